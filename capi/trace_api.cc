// llm_trace_start and llm_trace_stop.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status StartTrace(llm_engine* engine, const char* path, size_t path_size) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(path);
  LLM_ASSIGN_OR_RETURN(const std::string path_string, PathFromC(path, path_size));
  return engine->engine->trace().Start(path_string);
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_trace_start(llm_engine* engine, const char* path, size_t path_size) {
  return llm::Boundary([&] { return llm::StartTrace(engine, path, path_size); });
}

extern "C" llm_status llm_trace_stop(llm_engine* engine) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->trace().Stop();
  });
}
