// Full groups keep a chain of hashes, window groups one hash a token; logits depend on both.
#include "tests/engine/scripted_runner.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace llm {
namespace {

uint64_t Mix(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x7f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

ScriptedRunner::ScriptedRunner(const SchedulerOptions& options, int32_t vocab_size,
                               std::shared_ptr<ManualClock> clock)
    : options_(options), vocab_size_(vocab_size), clock_(std::move(clock)) {
  for (const int blocks : options.num_blocks) {
    slots_.emplace_back(static_cast<size_t>(blocks * options.block_size), 0xdead);
  }
}

size_t ScriptedRunner::block_bytes(int /*group*/) const {
  return static_cast<size_t>(options_.block_size) * sizeof(uint64_t);
}

absl::Status ScriptedRunner::ReadBlock(int group, BlockId block, std::byte* out) const {
  const uint64_t* slots = slots_[static_cast<size_t>(group)].data();
  std::memcpy(out, slots + block * options_.block_size, block_bytes(group));
  return absl::OkStatus();
}

absl::Status ScriptedRunner::WriteBlock(int group, BlockId block, const std::byte* from) {
  uint64_t* slots = slots_[static_cast<size_t>(group)].data();
  std::memcpy(slots + block * options_.block_size, from, block_bytes(group));
  return absl::OkStatus();
}

uint64_t* ScriptedRunner::Slot(size_t group, const Sequence& sequence, int32_t position) {
  static uint64_t nowhere = 0xbad;
  const size_t index = static_cast<size_t>(position / options_.block_size);
  const BlockTable& table = sequence.block_tables[group];
  if (index >= table.size() || table[index] == kNullBlock) {
    error_ = "a position without a block is used";
    return &nowhere;
  }
  return &slots_[group][static_cast<size_t>(table[index] * options_.block_size +
                                            position % options_.block_size)];
}

void ScriptedRunner::CopyBlocks(const StepPlan& plan) {
  for (const BlockCopy& copy : plan.block_copies) {
    std::vector<uint64_t>& slots = slots_[static_cast<size_t>(copy.group)];
    for (int32_t i = 0; i < copy.tokens; ++i) {
      slots[static_cast<size_t>(copy.destination * options_.block_size + i)] =
          slots[static_cast<size_t>(copy.source * options_.block_size + i)];
    }
  }
}

std::vector<uint64_t> ScriptedRunner::Compute(const ScheduledChunk& chunk,
                                              std::set<const uint64_t*>* written) {
  const Sequence& sequence = *chunk.sequence;
  std::vector<uint64_t> rows;
  for (int32_t p = chunk.begin; p < chunk.begin + chunk.length; ++p) {
    const uint64_t token = static_cast<uint64_t>(sequence.tokens[static_cast<size_t>(p)]);
    uint64_t row = 0;
    for (size_t g = 0; g < slots_.size(); ++g) {
      const int window = options_.groups[g].window;
      uint64_t* slot = Slot(g, sequence, p);
      if (!written->insert(slot).second) error_ = "a slot is written twice in a step";
      if (window == 0) {
        *slot = Mix(p == 0 ? 1 : *Slot(g, sequence, p - 1), token);
        row = Mix(row, *slot);
        continue;
      }
      *slot = Mix(static_cast<uint64_t>(p), token);
      for (int32_t q = std::max(0, p - window + 1); q <= p; ++q)
        row = Mix(row, *Slot(g, sequence, q));
    }
    rows.push_back(row);
  }
  return rows;
}

void ScriptedRunner::WriteRow(const ScheduledChunk& chunk, uint64_t hash) {
  const size_t begin = logits_.size();
  const bool nan = chunk.sequence->request.id == nan_request;
  for (int32_t v = 0; v < vocab_size_; ++v) {
    const uint64_t bits = Mix(hash, static_cast<uint64_t>(v)) >> 40;
    float logit = static_cast<float>(bits) / static_cast<float>(1 << 24) * 8.0f - 4.0f;
    if (v == favour) logit += 100.0f;
    logits_.push_back(nan ? std::numeric_limits<float>::quiet_NaN() : logit);
  }
  if (!script.empty()) {
    const size_t k = static_cast<size_t>(chunk.sequence->num_generated_tokens());
    logits_[begin + static_cast<size_t>(k < script.size() ? script[k] : end_id)] += 100.0f;
  }
  const auto best =
      std::max_element(logits_.begin() + static_cast<ptrdiff_t>(begin), logits_.end());
  double sum = 0;
  for (size_t i = begin; i < logits_.size(); ++i) sum += std::exp(static_cast<double>(logits_[i]));
  argmax_.push_back(
      nan ? -1 : static_cast<int32_t>(best - logits_.begin() - static_cast<ptrdiff_t>(begin)));
  max_.push_back(*best);
  log_sum_exp_.push_back(static_cast<float>(std::log(sum)));
}

void ScriptedRunner::WriteHidden(const ScheduledChunk& chunk, uint64_t hash) {
  const bool nan = chunk.sequence->request.id == nan_request;
  for (int32_t i = 0; i < kFakeHidden; ++i) {
    const uint64_t bits = Mix(hash, 1000 + static_cast<uint64_t>(i)) >> 40;
    const float value = static_cast<float>(bits) / static_cast<float>(1 << 24) - 0.5f;
    hidden_.push_back(nan ? std::numeric_limits<float>::quiet_NaN() : value);
  }
}

ScriptedRunner::AheadRow ScriptedRunner::RowOf(const Sequence& sequence, int32_t begin) const {
  AheadRow row = {.arrival_index = sequence.arrival_index, .begin = begin, .tables = {}};
  for (size_t group = 0; group < slots_.size(); ++group) {
    const int32_t window = options_.groups[group].window;
    const int32_t oldest = window == 0 ? 0 : std::max(0, begin - window + 1);
    const BlockTable& table = sequence.block_tables[group];
    const auto first = static_cast<size_t>(oldest / options_.block_size);
    const auto end = std::min(table.size(), static_cast<size_t>(begin / options_.block_size) + 1);
    row.tables.emplace_back(table.begin() + static_cast<ptrdiff_t>(std::min(first, end)),
                            table.begin() + static_cast<ptrdiff_t>(end));
  }
  return row;
}

bool ScriptedRunner::TakeAhead(const StepPlan& plan) {
  if (ahead_rows_.empty()) return false;
  const std::vector<AheadRow> rows = std::exchange(ahead_rows_, {});
  const auto had_begun = [&](const ScheduledChunk& chunk) {
    const AheadRow row = RowOf(*chunk.sequence, chunk.begin);
    return chunk.length == 1 && std::find(rows.begin(), rows.end(), row) != rows.end();
  };
  const auto num_begun = std::count_if(plan.chunks.begin(), plan.chunks.end(), had_begun);
  const bool is_taken = num_begun == static_cast<ptrdiff_t>(plan.chunks.size());
  if (num_begun != 0 && !is_taken) error_ = "a plan mixes rows that have begun with others";
  ++(is_taken ? ahead_counters_.steps_total : ahead_counters_.dropped_total);
  return is_taken;
}

void ScriptedRunner::RunAhead(const StepPlan& plan) {
  if (!run_ahead || !plan.looks_ahead) return;
  for (const ScheduledChunk& chunk : plan.chunks) {
    const Sequence& sequence = *chunk.sequence;
    if (EndsWithNextToken(sequence)) continue;
    for (size_t group = 0; group < slots_.size(); ++group) {
      Slot(group, sequence, sequence.num_tokens());
    }
    ahead_rows_.push_back(RowOf(sequence, sequence.num_tokens()));
  }
}

absl::StatusOr<StepLogits> ScriptedRunner::Execute(const StepPlan& plan) {
  const int step = steps_++;
  const bool was_ahead = is_ahead();
  const bool had_begun = TakeAhead(plan);
  clock_->AdvanceNs(step_ns + token_ns * plan.num_tokens);
  if (before) {
    const absl::Status status = before(step, plan);
    if (!status.ok()) return status;
  }
  logits_.clear();
  hidden_.clear();
  argmax_.clear();
  max_.clear();
  log_sum_exp_.clear();
  CopyBlocks(plan);
  std::set<const uint64_t*> written;
  int32_t tokens = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    tokens += chunk.length;
    const std::vector<uint64_t> rows = Compute(chunk, &written);
    const size_t first = rows.size() - static_cast<size_t>(chunk.num_logits);
    for (size_t i = first; i < rows.size(); ++i) WriteRow(chunk, rows[i]);
    const size_t first_hidden = rows.size() - static_cast<size_t>(chunk.num_hidden);
    for (size_t i = first_hidden; i < rows.size(); ++i) WriteHidden(chunk, rows[i]);
  }
  if (tokens != plan.num_tokens) error_ = "num_tokens is not the sum of the chunks";
  if (after) {
    const absl::Status status = after(step, plan);
    if (!status.ok()) return status;
  }
  RunAhead(plan);
  StepLogits result;
  if (had_begun) result.device_ns = step_ns + token_ns * plan.num_tokens;
  if (was_ahead && !had_begun) result.device_ns = StepLogits::kNotMeasured;
  result.logits = logits_.data();
  result.argmax = argmax_;
  result.max = max_;
  result.log_sum_exp = log_sum_exp_;
  result.rows = static_cast<int64_t>(argmax_.size());
  result.vocab_size = vocab_size_;
  result.hidden = hidden_.data();
  result.hidden_rows = static_cast<int64_t>(hidden_.size()) / kFakeHidden;
  result.hidden_size = kFakeHidden;
  return result;
}

}  // namespace llm
