// Every number comes from the function that the open itself sizes by, so that the two cannot
// differ.
#include "src/engine/memory_plan.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/engine/check_vocabulary.h"
#include "src/engine/choose_backend.h"
#include "src/engine/engine_plan.h"
#include "src/engine/load_weights.h"
#include "src/engine/open_source.h"
#include "src/engine/system_limits.h"
#include "src/engine/tokenizer_from_gguf.h"

namespace llm {
namespace {

// The engine will find the model's memory taken.
absl::StatusOr<int64_t> AvailableAfter(const MemoryPlan& plan, const Device* device) {
  if (device != nullptr) {
    LLM_RETURN_IF_ERROR(CheckDeviceRoom(*device, plan.weights_bytes, "the weights"));
    LLM_ASSIGN_OR_RETURN(const size_t free_bytes, device->FreeBytes());
    return static_cast<int64_t>(free_bytes - std::min<uint64_t>(free_bytes, plan.weights_bytes));
  }
  const int64_t taken = static_cast<int64_t>(plan.weights_bytes + plan.tokenizer_bytes);
  LLM_ASSIGN_OR_RETURN(const int64_t free_bytes, AvailableMemoryBytes());
  return std::max<int64_t>(0, free_bytes - taken);
}

uint64_t EventBytes(const OpenOptions& options) {
  const uint64_t requests = options.max_queued_requests != 0
                                ? static_cast<uint64_t>(options.max_queued_requests)
                                : static_cast<uint64_t>(QueueBounds().max_requests);
  const uint64_t pending = options.max_pending_bytes != 0 ? options.max_pending_bytes
                                                          : EngineOptions().max_pending_bytes;
  return CheckedMul(requests, pending).value_or(UINT64_MAX);
}

}  // namespace

absl::StatusOr<MemoryPlan> PlanMemory(std::unique_ptr<ModelFile> file, const ModelOptions& model,
                                      const OpenOptions& engine) {
  const std::string where = file->name();
  LLM_ASSIGN_OR_RETURN(const OpenedSource opened, OpenSource(std::move(file), model));
  const WeightSource* source = opened.source.get();
  MemoryPlan plan;
  // The tables are built and measured: the header holds all that they are made from.
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                       TokenizerFromGguf(source->metadata()));
  plan.tokenizer_bytes = tokenizer->size_bytes();
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*source));
  LLM_RETURN_IF_ERROR(CheckVocabulary(where, *tokenizer, config.vocab_size));
  LLM_ASSIGN_OR_RETURN(const Backend backend, ChooseBackend(model, *source, config));
  int threads = model.num_threads;
  if (threads <= 0) {
    LLM_ASSIGN_OR_RETURN(threads, UsableCores());
  }
  LLM_ASSIGN_OR_RETURN(const LoadBytes load, PlanLoad(*source, config, *backend.kernels, threads));
  LLM_RETURN_IF_ERROR(CheckLoadLimit(model, load));
  plan.weights_bytes = load.weights;
  plan.loading_bytes = load.staging;
  LLM_ASSIGN_OR_RETURN(const int64_t available, AvailableAfter(plan, backend.device.get()));
  LLM_ASSIGN_OR_RETURN(
      const EnginePlan sized,
      PlanEngine(config, *backend.kernels, model.float_activations, engine, available));
  plan.kv_bytes = sized.kv_bytes;
  plan.workspace_bytes = sized.workspace_bytes;
  plan.event_bytes = EventBytes(engine);
  plan.kv_tokens = sized.kv_tokens;
  plan.max_context_tokens = sized.max_context_tokens;
  plan.max_sequences = sized.runner.max_sequences;
  plan.max_step_tokens = sized.runner.max_step_tokens;
  return plan;
}

}  // namespace llm
