// llm_plan.
#include "capi/boundary.h"
#include "capi/strings.h"
#include "capi/translate_engine.h"
#include "capi/translate_model.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"
#include "src/engine/memory_plan.h"

namespace llm {
namespace {

absl::Status Plan(const llm_model_source* source, const llm_model_options* model_options,
                  const llm_engine_options* engine_options, llm_memory_plan* plan) {
  LLM_RETURN_IF_NULL(source);
  LLM_RETURN_IF_NULL(plan);
  ModelOptions model;
  LLM_RETURN_IF_ERROR(TranslateModelOptions(model_options, &model));
  OpenOptions engine;
  LLM_RETURN_IF_ERROR(TranslateEngineOptions(engine_options, &engine));
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, FileOfSource(*source, model.limits));
  LLM_ASSIGN_OR_RETURN(const MemoryPlan planned, PlanMemory(std::move(file), model, engine));
  llm_memory_plan ours;
  llm_memory_plan_init(&ours);
  ours.max_sequences = static_cast<uint32_t>(planned.max_sequences);
  ours.weights_bytes = planned.weights_bytes;
  ours.loading_bytes = planned.loading_bytes;
  ours.tokenizer_bytes = planned.tokenizer_bytes;
  ours.kv_bytes = planned.kv_bytes;
  ours.workspace_bytes = planned.workspace_bytes;
  ours.event_bytes = planned.event_bytes;
  ours.kv_tokens = static_cast<uint64_t>(planned.kv_tokens);
  ours.max_context_tokens = static_cast<uint32_t>(planned.max_context_tokens);
  ours.max_step_tokens = static_cast<uint32_t>(planned.max_step_tokens);
  return WriteStruct("llm_memory_plan", ours, plan);
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_plan(const llm_model_source* source,
                               const llm_model_options* model_options,
                               const llm_engine_options* engine_options, llm_memory_plan* plan) {
  return llm::Boundary([&] { return llm::Plan(source, model_options, engine_options, plan); });
}
