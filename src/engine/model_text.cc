// Completes the caller's JSON with what every chat template expects, then renders.
#include "src/engine/model_text.h"

#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/chat_reasoning.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

using Json = nlohmann::json;

constexpr int kMaxJsonDepth = 64;

// What must be known of a chat before members are added to its text. No tree is built, since the
// template's parser builds its own.
class ChatScan : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Value(false); }
  bool boolean(bool) override { return Value(false); }
  bool number_integer(number_integer_t) override { return Value(false); }
  bool number_unsigned(number_unsigned_t) override { return Value(false); }
  bool number_float(number_float_t, const string_t&) override { return Value(false); }
  bool string(string_t&) override { return Value(false); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override {
    if (depth_ == 0) is_object = true;
    return Value(false) && Open();
  }
  bool start_array(size_t) override {
    if (depth_ == 0) is_array = true;
    return Value(true) && Open();
  }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool key(string_t& name) override {
    if (depth_ != 1) return true;
    at_messages_ = name == "messages";
    has_generation_prompt |= name == "add_generation_prompt";
    has_bos |= name == "bos_token";
    has_eos |= name == "eos_token";
    return true;
  }
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

  bool is_array = false;
  bool is_object = false;
  bool has_messages = false;  // an array of that name; of several members the last counts
  bool has_generation_prompt = false;
  bool has_bos = false;
  bool has_eos = false;
  bool too_deep = false;

 private:
  bool Value(bool array) {
    if (depth_ == 1 && at_messages_) has_messages = array;
    return true;
  }
  bool Open() {
    too_deep = ++depth_ > kMaxJsonDepth;
    return !too_deep;
  }

  int depth_ = 0;
  bool at_messages_ = false;
};

absl::Status ScanChat(absl::string_view chat, ChatScan* scan) {
  // The parser takes a zero byte for the end.
  const bool parsed =
      chat.find('\0') == absl::string_view::npos && Json::sax_parse(chat.begin(), chat.end(), scan);
  if (scan->too_deep) {
    return absl::InvalidArgumentError(
        absl::StrCat("chat: JSON nested deeper than ", kMaxJsonDepth));
  }
  if (!parsed) {
    const size_t valid = ValidUtf8Prefix(chat);
    return absl::InvalidArgumentError(valid == chat.size()
                                          ? "chat: not valid JSON"
                                          : absl::StrCat("chat: not UTF-8 at byte ", valid));
  }
  if (scan->is_array || (scan->is_object && scan->has_messages)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "chat: expected an array of messages, or an object with an array \"messages\"");
}

// JSON text of a token, for a template. `replace`: its bytes need not be UTF-8, and dump would
// throw.
std::string SpecialToken(const Tokenizer& tokenizer, int32_t id) {
  if (id < 0 || id >= tokenizer.vocab_size()) return R"("")";
  const Json text = std::string(tokenizer.TokenBytes(id, /*render_special=*/true));
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::Status CheckTemplate(const ModelText& model) {
  if (model.chat_template != nullptr) return absl::OkStatus();
  if (model.chat_template_error.empty()) {
    return absl::FailedPreconditionError("chat: the model file has no chat template");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "chat: the chat template of the model file is not usable: ", model.chat_template_error));
}

// The template's variables as JSON.
absl::StatusOr<std::string> ContextOf(const ModelText& model, absl::string_view chat) {
  LLM_RETURN_IF_ERROR(CheckTemplate(model));
  ChatScan scan;
  LLM_RETURN_IF_ERROR(ScanChat(chat, &scan));
  // Valid JSON, so that nothing but white space follows the object's brace.
  std::string json = scan.is_array ? absl::StrCat("{\"messages\":", chat)
                                   : std::string(chat.substr(0, chat.rfind('}')));
  const Tokenizer& tokenizer = *model.tokenizer;
  if (!scan.has_generation_prompt) absl::StrAppend(&json, ",\"add_generation_prompt\":true");
  if (!scan.has_bos) {
    absl::StrAppend(&json, ",\"bos_token\":", SpecialToken(tokenizer, tokenizer.bos_id()));
  }
  if (!scan.has_eos) {
    absl::StrAppend(&json, ",\"eos_token\":", SpecialToken(tokenizer, tokenizer.eos_id()));
  }
  json += '}';
  return WithReasoningNames(std::move(json));
}

int64_t NowS() { return static_cast<int64_t>(std::time(nullptr)); }

}  // namespace

absl::StatusOr<std::string> RenderChat(const ModelText& model, absl::string_view chat) {
  LLM_ASSIGN_OR_RETURN(const std::string context, ContextOf(model, chat));
  return model.chat_template->Render(context, NowS());
}

absl::StatusOr<RenderedChat> RenderMarkedChat(const ModelText& model, absl::string_view chat) {
  LLM_ASSIGN_OR_RETURN(const std::string context, ContextOf(model, chat));
  return model.chat_template->RenderMarked(context, NowS());
}

}  // namespace llm
