// Completes the caller's JSON with what every chat template expects, then renders.
#include "src/engine/model_text.h"

#include <ctime>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

using Json = nlohmann::ordered_json;

// Writing JSON recurses: deeper input than this is refused before that.
constexpr int kMaxJsonDepth = 64;

absl::StatusOr<Json> ParseChat(absl::string_view chat) {
  bool too_deep = false;
  const auto check_depth = [&too_deep](int depth, Json::parse_event_t, Json&) {
    if (depth > kMaxJsonDepth) too_deep = true;
    return !too_deep;
  };
  Json parsed = Json::parse(chat.begin(), chat.end(), check_depth, /*allow_exceptions=*/false);
  if (too_deep) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat: JSON nested deeper than ", kMaxJsonDepth));
  }
  if (parsed.is_discarded()) return absl::InvalidArgumentError("chat: not valid JSON");
  return parsed;
}

std::string SpecialText(const Tokenizer& tokenizer, int32_t id) {
  if (id < 0 || id >= tokenizer.vocab_size()) return "";
  return std::string(tokenizer.TokenBytes(id, /*render_special=*/true));
}

}  // namespace

absl::StatusOr<std::string> RenderChat(const ModelText& model, absl::string_view chat) {
  if (model.chat_template == nullptr) {
    return absl::FailedPreconditionError("chat: the model file has no chat template");
  }
  absl::StatusOr<Json> parsed = ParseChat(chat);
  if (!parsed.ok()) return parsed.status();
  Json context = Json::object();
  if (parsed->is_array()) {
    context["messages"] = std::move(*parsed);
  } else if (parsed->is_object() && parsed->contains("messages") &&
             (*parsed)["messages"].is_array()) {
    context = std::move(*parsed);
  } else {
    return absl::InvalidArgumentError(
        "chat: expected an array of messages, or an object with an array \"messages\"");
  }
  if (!context.contains("add_generation_prompt")) context["add_generation_prompt"] = true;
  const Tokenizer& tokenizer = *model.tokenizer;
  if (!context.contains("bos_token"))
    context["bos_token"] = SpecialText(tokenizer, tokenizer.bos_id());
  if (!context.contains("eos_token"))
    context["eos_token"] = SpecialText(tokenizer, tokenizer.eos_id());
  // `replace`: a token's bytes need not be UTF-8, and dump would throw.
  const std::string json = context.dump(-1, ' ', false, Json::error_handler_t::replace);
  return model.chat_template->Render(json, static_cast<int64_t>(std::time(nullptr)));
}

}  // namespace llm
