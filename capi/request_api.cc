// llm_submit, llm_cancel and llm_metrics.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/translate_engine.h"
#include "capi/translate_request.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

extern "C" llm_status llm_submit(llm_engine* engine, const llm_request* request,
                                 llm_request_id* id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(request);
    LLM_RETURN_IF_NULL(id);
    llm::RequestSpec spec;
    LLM_RETURN_IF_ERROR(llm::TranslateRequest(request, &spec));
    return engine->engine->Submit(spec, id);
  });
}

extern "C" llm_status llm_cancel(llm_engine* engine, llm_request_id id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->Cancel(id);
  });
}

extern "C" llm_status llm_metrics(const llm_engine* engine, llm_metrics_snapshot* metrics) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(metrics);
    return llm::WriteStruct("llm_metrics_snapshot",
                            llm::TranslateMetrics(engine->engine->Metrics()), metrics);
  });
}
