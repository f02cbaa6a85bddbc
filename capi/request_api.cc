// llm_submit and llm_cancel.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/text_or_ids.h"
#include "capi/translate_request.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

extern "C" llm_status llm_submit(llm_engine* engine, const llm_request* request,
                                 llm_request_id* id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(request);
    LLM_RETURN_IF_NULL(id);
    llm::RequestSpec spec;
    LLM_RETURN_IF_ERROR(llm::CountIfRejected(engine, llm::TranslateRequest(request, &spec)));
    return engine->engine->Submit(spec, id);
  });
}

extern "C" llm_status llm_cancel(llm_engine* engine, llm_request_id id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->Cancel(id);
  });
}
