// Sizes come from the functions that lay weights and keys out, so that they cannot differ.
#include "src/engine/byte_model.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kLeastBytes = size_t{16} << 20;
constexpr size_t kSliceBytes = size_t{1} << 20;
constexpr int kSlicesPerThread = 4;  // a stretch of some 0.5 ms: longer than waking the threads
constexpr int64_t kMeasureNs = 2'000'000;

absl::StatusOr<uint64_t> PackedBytes(const KernelTable& kernels, const PackedWeight& weight) {
  LLM_ASSIGN_OR_RETURN(const size_t bytes,
                       kernels.packed_bytes(weight.format, weight.rows, weight.cols));
  return uint64_t{bytes};
}

void AddGroups(const ModelConfig& config, const RunnerOptions& options, ByteModel* bytes) {
  const size_t block_bytes = MakeKvLayout(config, options).block_bytes();
  for (const KvGroupSpec& group : config.kv_groups) {
    bytes->groups.push_back({group.window, uint64_t{block_bytes * group.layers.size()} /
                                               static_cast<uint64_t>(options.block_size)});
  }
}

// Four chains: one alone would wait for its additions, not for memory.
uint64_t Sum(const std::byte* data, size_t size) {
  uint64_t sums[4] = {};
  for (size_t at = 0; at + sizeof(sums) <= size; at += sizeof(sums)) {
    uint64_t words[4];
    std::memcpy(words, data + at, sizeof(words));
    for (int i = 0; i < 4; ++i) sums[i] += words[i];
  }
  return sums[0] + sums[1] + sums[2] + sums[3];
}

}  // namespace

absl::StatusOr<ByteModel> MakeByteModel(const Model& model, const RunnerOptions& options) {
  const Weights& weights = model.weights;
  const ModelConfig& config = model.config;
  ByteModel bytes;
  LLM_ASSIGN_OR_RETURN(bytes.head_bytes, PackedBytes(*model.kernels, weights.head));
  LLM_ASSIGN_OR_RETURN(const uint64_t embedding, PackedBytes(*model.kernels, weights.embedding));
  bytes.embedding_row_bytes = embedding / static_cast<uint64_t>(weights.embedding.rows);
  const uint64_t tables = bytes.head_bytes + (config.tied_embeddings ? 0 : embedding);
  bytes.layer_weight_bytes = weights.bytes.size() - std::min(weights.bytes.size(), tables);
  const RouterRule& router = config.experts.router;
  uint64_t experts = 0;
  for (const LayerWeights& layer : weights.layers) {
    for (const ExpertWeight* part : {&layer.experts.gate, &layer.experts.up, &layer.experts.down}) {
      if (part->weight.rows == 0) continue;
      LLM_ASSIGN_OR_RETURN(const uint64_t part_bytes, PackedBytes(*model.kernels, part->weight));
      experts += part_bytes;
    }
  }
  if (experts > 0) {
    bytes.layer_weight_bytes -= std::min(bytes.layer_weight_bytes, experts);
    bytes.num_experts = router.num_experts;
    bytes.experts_per_token = router.experts_per_token;
    bytes.expert_bytes = experts / static_cast<uint64_t>(router.num_experts);
  }
  AddGroups(config, options, &bytes);
  return bytes;
}

ByteModel SimulatedByteModel(const ModelConfig& config, const RunnerOptions& options,
                             uint64_t weights_bytes) {
  ByteModel bytes;
  bytes.layer_weight_bytes = weights_bytes;
  AddGroups(config, options, &bytes);
  return bytes;
}

uint64_t MeasureReadBandwidth(const Weights& weights, const Clock& clock, ThreadPool* pool) {
  const size_t size = weights.bytes.size();
  if (size < kLeastBytes) return 0;
  const size_t stretch = kSliceBytes * static_cast<size_t>(kSlicesPerThread) *
                         static_cast<size_t>(pool->num_threads());
  const int slices = kSlicesPerThread * pool->num_threads();
  std::atomic<uint64_t> sink{0};  // so that nothing is optimised away
  double best = 0;
  const int64_t start_ns = clock.NowNs();
  int64_t now_ns = start_ns;
  for (size_t at = 0; at + stretch <= size && now_ns - start_ns < kMeasureNs; at += stretch) {
    const int64_t begin_ns = now_ns;
    const std::byte* data = weights.bytes.data() + at;
    pool->ParallelFor(slices, [&](int task, int) {
      sink += Sum(data + static_cast<size_t>(task) * kSliceBytes, kSliceBytes);
    });
    now_ns = clock.NowNs();
    if (now_ns <= begin_ns) continue;
    best = std::max(best, static_cast<double>(stretch) / static_cast<double>(now_ns - begin_ns));
  }
  return static_cast<uint64_t>(best * 1e9);
}

}  // namespace llm
