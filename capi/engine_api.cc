// llm_engine_*: opening, driving, shutting down.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/translate_engine.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status OpenHandle(llm_model* model, const llm_engine_options* options, llm_engine** engine) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(engine);
  OpenOptions translated;
  LLM_RETURN_IF_ERROR(TranslateEngineOptions(options, &translated));
  auto handle = std::make_unique<llm_engine>();
  LLM_ASSIGN_OR_RETURN(handle->engine, OpenEngine(model->model, translated));
  handle->queue.queue = handle->engine->queue();
  handle->queue.owned_by_engine = true;
  *engine = handle.release();
  return absl::OkStatus();
}

absl::Status CloseHandle(llm_engine* engine) {
  if (engine == nullptr) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(engine->engine->Close());
  delete engine;
  return absl::OkStatus();
}

absl::Status StepHandle(llm_engine* engine, uint32_t* worked) {
  LLM_RETURN_IF_NULL(engine);
  LLM_ASSIGN_OR_RETURN(const bool did_work, engine->engine->Step());
  if (worked != nullptr) *worked = did_work ? 1 : 0;
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_engine_open(llm_model* model, const llm_engine_options* options,
                                      llm_engine** engine) {
  return llm::Boundary([&] { return llm::OpenHandle(model, options, engine); });
}

extern "C" llm_status llm_engine_shutdown(llm_engine* engine, int64_t timeout_ns) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->Shutdown(timeout_ns);
  });
}

extern "C" llm_status llm_engine_close(llm_engine* engine) {
  return llm::Boundary([&] { return llm::CloseHandle(engine); });
}

extern "C" llm_status llm_engine_step(llm_engine* engine, uint32_t* worked) {
  return llm::Boundary([&] { return llm::StepHandle(engine, worked); });
}

extern "C" llm_queue* llm_engine_queue(llm_engine* engine) {
  return engine == nullptr ? nullptr : &engine->queue;
}

extern "C" llm_status llm_cache_flush(llm_engine* engine) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->FlushCache();
  });
}
