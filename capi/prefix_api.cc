// llm_prefix_*.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/text_or_ids.h"
#include "capi/translate_request.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// A prefix is a request that asks for nothing: the fields of the same name are read as there.
absl::Status TranslatePrefix(const llm_prefix* given, RequestSpec* spec) {
  llm_prefix c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_prefix", given, &c));
  llm_request request;
  llm_request_init(&request);
  request.parse_special = c.parse_special;
  request.text = c.text;
  request.chat = c.chat;
  request.prompt_ids = c.prompt_ids;
  request.num_prompt_ids = c.num_prompt_ids;
  request.cache_salt = c.cache_salt;
  request.priority = c.priority;
  request.literal_content = c.literal_content;
  request.adapter_id = c.adapter_id;
  return TranslateRequest(&request, spec);
}

absl::Status PinPrefix(llm_engine* engine, const llm_prefix* prefix, llm_pin_id* id) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(prefix);
  LLM_RETURN_IF_NULL(id);
  RequestSpec spec;
  LLM_RETURN_IF_ERROR(CountIfRejected(engine, TranslatePrefix(prefix, &spec)));
  LLM_ASSIGN_OR_RETURN(*id, engine->engine->PinPrefix(std::move(spec)));
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_prefix_pin(llm_engine* engine, const llm_prefix* prefix, llm_pin_id* id) {
  return llm::Boundary([&] { return llm::PinPrefix(engine, prefix, id); });
}

extern "C" llm_status llm_prefix_unpin(llm_engine* engine, llm_pin_id id) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    return engine->engine->UnpinPrefix(id);
  });
}
