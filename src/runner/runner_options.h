// How a runner is sized, and what that costs in bytes before anything is allocated.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/kernel_table.h"
#include "kernels/kv_layout.h"
#include "src/model/model_config.h"
#include "src/runner/graph_bucket.h"
#include "src/tensor/dtype.h"

namespace llm {

struct RunnerOptions {
  DType kv_dtype = DType::kF16;
  int block_size = 16;  // tokens; a power of two, at least kKeyTile
  int max_step_tokens = 0;
  int max_sequences = 0;
  int max_logit_rows = 0;  // of one step: at least max_sequences; more for scoring and embedding
  int max_context = 0;     // tokens of one sequence
  bool float_activations = false;
  bool graphs = true;           // of steps of decodes, on a device
  bool run_ahead = true;        // of plans that look ahead, on a device
  bool batch_invariant = true;  // off: where the backend has a library with other orders of sums
  std::vector<int> num_blocks;  // [kv_groups]
};

struct RunnerBytes {
  std::vector<size_t> kv_block;  // [kv_groups]: one block in all layers of the group
  size_t kv_cache = 0;           // num_blocks of each
  size_t workspace = 0;          // everything else that ModelRunner::Create allocates
  size_t pinned = 0;             // of the workspace, on a device: host memory
  size_t graphs = 0;             // likewise: kept for the runner's graphs, not allocated
};

// Exactly what ModelRunner::Create allocates with these options (num_blocks may be empty: kv_cache
// is 0 then). Pure arithmetic. INVALID_ARGUMENT naming the option that is out of range.
// WeightsBytes (src/model/weights.h) gives the weights.
absl::StatusOr<RunnerBytes> PlanRunner(const ModelConfig& config, const KernelTable& kernels,
                                       const RunnerOptions& options, int num_threads);

GraphShape MakeGraphShape(const ModelConfig& config, const RunnerOptions& options);

KvLayout MakeKvLayout(const ModelConfig& config, const RunnerOptions& options);

}  // namespace llm
