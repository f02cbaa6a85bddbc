// Pairs in closed form: a long chunk costs no loop over its tokens.
#include "src/scheduler/layer_windows.h"

#include <algorithm>

namespace llm {
namespace {

// Keys seen by queries [begin, begin + length), all together.
double Pairs(int32_t begin, int32_t length, int window) {
  const double first = begin + 1.0;
  const double last = static_cast<double>(begin) + length;
  if (window == 0 || last <= window) return (first + last) / 2 * length;
  if (first >= window) return static_cast<double>(window) * length;
  const double growing = window - begin;  // queries that do not fill the window yet
  return (first + window) / 2 * growing + window * (length - growing);
}

}  // namespace

LayerWindows::LayerWindows(const std::vector<KvGroupSpec>& groups) {
  double layers = 0;
  for (const KvGroupSpec& group : groups) {
    // Scripted groups name no layers: each counts as one.
    const double share = std::max<double>(1, static_cast<double>(group.layers.size()));
    windows_.push_back({.tokens = group.window, .share = share});
    layers += share;
  }
  for (Window& window : windows_) window.share /= layers;
}

StepWork LayerWindows::Chunk(int32_t begin, int32_t length) const {
  double pairs = 0;
  for (const Window& window : windows_) {
    pairs += window.share * Pairs(begin, length, window.tokens);
  }
  if (length == 1) return {.decode_rows = 1, .decode_keys = pairs};
  return {.prefill_tokens = static_cast<double>(length), .prefill_pairs = pairs};
}

StepWork LayerWindows::Step(const StepPlan& plan) const {
  StepWork work;
  for (const ScheduledChunk& chunk : plan.chunks) work = work + Chunk(chunk.begin, chunk.length);
  return work;
}

}  // namespace llm
