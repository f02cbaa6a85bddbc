// llm_tokenize, llm_detokenize, llm_chat_render.
#include "capi/boundary.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status CheckFlags(uint32_t flags, uint32_t allowed) {
  if ((flags & ~allowed) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("flags: ", flags, " has unknown bits"));
}

absl::Status Tokenize(const llm_model* model, const char* text, size_t text_size, uint32_t flags,
                      int32_t* ids, size_t capacity, size_t* count) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(count);
  LLM_RETURN_IF_ERROR(CheckArray("text", text, text_size));
  LLM_RETURN_IF_ERROR(CheckArray("ids", ids, capacity));
  LLM_RETURN_IF_ERROR(CheckFlags(flags, LLM_TEXT_ADD_SPECIAL | LLM_TEXT_PARSE_SPECIAL));
  EncodeOptions options;
  options.add_special = (flags & LLM_TEXT_ADD_SPECIAL) != 0;
  options.parse_special = (flags & LLM_TEXT_PARSE_SPECIAL) != 0;
  LLM_ASSIGN_OR_RETURN(const std::vector<int32_t> encoded,
                       model->model->text().tokenizer->Encode(FromC({text, text_size}), options));
  CopyOut(encoded.data(), encoded.size(), ids, capacity, count);
  return absl::OkStatus();
}

absl::Status Detokenize(const llm_model* model, const int32_t* ids, size_t num_ids, uint32_t flags,
                        char* text, size_t capacity, size_t* size) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(size);
  LLM_RETURN_IF_ERROR(CheckArray("ids", ids, num_ids));
  LLM_RETURN_IF_ERROR(CheckArray("text", text, capacity));
  LLM_RETURN_IF_ERROR(CheckFlags(flags, LLM_TEXT_RENDER_SPECIAL));
  LLM_ASSIGN_OR_RETURN(const std::string decoded, model->model->text().tokenizer->Decode(
                                                      absl::MakeConstSpan(ids, num_ids),
                                                      (flags & LLM_TEXT_RENDER_SPECIAL) != 0));
  CopyOut(decoded.data(), decoded.size(), text, capacity, size);
  return absl::OkStatus();
}

absl::Status ChatRender(const llm_model* model, const char* chat, size_t chat_size, char* text,
                        size_t capacity, size_t* size) {
  LLM_RETURN_IF_NULL(model);
  LLM_RETURN_IF_NULL(chat);
  LLM_RETURN_IF_NULL(size);
  LLM_RETURN_IF_ERROR(CheckArray("chat", chat, chat_size));
  LLM_RETURN_IF_ERROR(CheckArray("text", text, capacity));
  LLM_ASSIGN_OR_RETURN(const std::string rendered,
                       RenderChat(model->model->text(), FromC({chat, chat_size})));
  CopyOut(rendered.data(), rendered.size(), text, capacity, size);
  return absl::OkStatus();
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_tokenize(const llm_model* model, const char* text, size_t text_size,
                                   uint32_t flags, int32_t* ids, size_t capacity, size_t* count) {
  return llm::Boundary(
      [&] { return llm::Tokenize(model, text, text_size, flags, ids, capacity, count); });
}

extern "C" llm_status llm_detokenize(const llm_model* model, const int32_t* ids, size_t num_ids,
                                     uint32_t flags, char* text, size_t capacity, size_t* size) {
  return llm::Boundary(
      [&] { return llm::Detokenize(model, ids, num_ids, flags, text, capacity, size); });
}

extern "C" llm_status llm_chat_render(const llm_model* model, const char* chat, size_t chat_size,
                                      char* text, size_t capacity, size_t* size) {
  return llm::Boundary(
      [&] { return llm::ChatRender(model, chat, chat_size, text, capacity, size); });
}
