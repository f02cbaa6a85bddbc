// What a model and an engine on it will take, before either is opened.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/engine/loaded_model.h"
#include "src/engine/open_engine.h"

namespace llm {

// As llm_memory_plan.
struct MemoryPlan {
  uint64_t weights_bytes = 0;
  uint64_t loading_bytes = 0;
  uint64_t tokenizer_bytes = 0;
  uint64_t kv_bytes = 0;
  uint64_t workspace_bytes = 0;
  uint64_t event_bytes = 0;
  int64_t kv_tokens = 0;
  int32_t max_context_tokens = 0;
  int32_t max_sequences = 0;
  int32_t max_step_tokens = 0;
};

// Reads the header alone. The errors are those of LoadedModel::Open and OpenEngine.
absl::StatusOr<MemoryPlan> PlanMemory(std::unique_ptr<ModelFile> file, const ModelOptions& model,
                                      const OpenOptions& engine);

}  // namespace llm
