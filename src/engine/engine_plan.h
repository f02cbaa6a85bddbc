// Resolves an engine's options into numbers, by arithmetic alone.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "src/engine/open_engine.h"
#include "src/model/model_config.h"
#include "src/runner/runner_options.h"

namespace llm {

struct EnginePlan {
  int num_threads = 1;
  int64_t kv_tokens = 0;  // of a full group
  int32_t max_context_tokens = 0;
  int64_t step_ns = 0;  // what a step may take, as far as it can be predicted; 0: any
  RunnerOptions runner;
  uint64_t kv_bytes = 0;
  uint64_t workspace_bytes = 0;
};

// `available_bytes`: memory that the process can still get, of the device where the kernels have
// one. The default KV size is at most a quarter of the host's, or all that is left of a device's,
// within max_memory_bytes, but a twentieth (at least 256 MiB). RESOURCE_EXHAUSTED, with the
// numbers, where the limit, or the device's memory, is too small.
absl::StatusOr<EnginePlan> PlanEngine(const ModelConfig& config, const KernelTable& kernels,
                                      bool float_activations, const OpenOptions& options,
                                      int64_t available_bytes);

}  // namespace llm
