// llm_prefix_*.
#include <cstddef>

#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/text_or_ids.h"
#include "capi/translate_request.h"
#include "capi/versioned_struct.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"
#include "src/engine/saved_prefix.h"

namespace llm {
namespace {

// A prefix is a request that asks for nothing: the fields of the same name are read as there.
absl::Status TranslatePrefix(const llm_prefix* given, RequestSpec* spec) {
  llm_prefix c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_prefix", given, &c));
  LLM_RETURN_IF_ERROR(
      CheckLeastSize("llm_prefix", c.struct_size, offsetof(llm_prefix, cache_salt), "the prompt"));
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

absl::Status Save(llm_engine* engine, const llm_prefix* prefix, const char* path,
                  size_t path_size) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(prefix);
  LLM_RETURN_IF_NULL(path);
  LLM_ASSIGN_OR_RETURN(const std::string path_string, PathFromC(path, path_size));
  RequestSpec spec;
  LLM_RETURN_IF_ERROR(CountIfRejected(engine, TranslatePrefix(prefix, &spec)));
  return SavePrefix(engine->engine.get(), std::move(spec), path_string);
}

absl::Status Load(llm_engine* engine, const char* path, size_t path_size, const llm_string* salt,
                  size_t* num_tokens, llm_pin_id* pin) {
  LLM_RETURN_IF_NULL(engine);
  LLM_RETURN_IF_NULL(path);
  LLM_ASSIGN_OR_RETURN(const std::string path_string, PathFromC(path, path_size));
  std::string cache_salt;
  if (salt != nullptr) {
    LLM_RETURN_IF_ERROR(CheckArray("cache_salt", salt->data, salt->size));
    cache_salt = std::string(FromC(*salt));
  }
  LLM_ASSIGN_OR_RETURN(const LoadedPrefix loaded,
                       LoadPrefix(engine->engine.get(), path_string, cache_salt, pin != nullptr));
  if (num_tokens != nullptr) *num_tokens = loaded.num_tokens;
  if (pin != nullptr) *pin = loaded.pin_id;
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

extern "C" llm_status llm_prefix_save(llm_engine* engine, const llm_prefix* prefix,
                                      const char* path, size_t path_size) {
  return llm::Boundary([&] { return llm::Save(engine, prefix, path, path_size); });
}

extern "C" llm_status llm_prefix_load(llm_engine* engine, const char* path, size_t path_size,
                                      const llm_string* cache_salt, size_t* num_tokens,
                                      llm_pin_id* pin) {
  return llm::Boundary(
      [&] { return llm::Load(engine, path, path_size, cache_salt, num_tokens, pin); });
}
