// From a loaded model and a host's options to a running engine: defaults, KV memory, calibration.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/base/log.h"
#include "src/engine/engine.h"
#include "src/engine/host_hooks.h"
#include "src/engine/loaded_model.h"
#include "src/scheduler/scheduler.h"
#include "src/tensor/dtype.h"

namespace llm {

// Zero means the default of llm_engine_options.
struct OpenOptions {
  int64_t num_threads = 0;
  DType kv_dtype = DType::kF16;
  int64_t block_size = 0;
  uint64_t kv_tokens = 0;
  int64_t max_context_tokens = 0;
  int64_t max_sequences = 0;
  int64_t max_step_tokens = 0;
  int64_t token_gap_target_ns = 0;  // of requests that state none
  SchedulingPolicy policy = SchedulingPolicy::kFcfs;
  AdmissionPolicy admission = AdmissionPolicy::kPredict;
  int64_t max_queued_requests = 0;
  bool prefix_cache = true;
  uint64_t max_queued_tokens = 0;
  uint64_t max_memory_bytes = 0;
  uint64_t max_pending_bytes = 0;
  SpillOptions spill;
  int64_t hold_us = 0;
  int64_t max_long_requests = 0;
  int64_t long_request_tokens = 0;
  bool manual = false;
  int64_t spin_us = 0;
  Logger logger;
  HostHooks host;
  StepCostModel::Coefficients sim_cost;  // of a simulated model
  bool has_sim_cost = false;
  bool refuse_late = true;
  bool graphs = true;
  bool run_ahead = true;
  bool batch_invariant = true;  // of a device: the CPU always is
};

// INVALID_ARGUMENT naming the option; RESOURCE_EXHAUSTED: memory, or threads.
absl::StatusOr<std::unique_ptr<Engine>> OpenEngine(const std::shared_ptr<const LoadedModel>& model,
                                                   const OpenOptions& options);

}  // namespace llm
