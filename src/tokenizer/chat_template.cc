// The entry to the template language: checks sizes, then parses once and renders within a budget
// per call.
#include "src/tokenizer/chat_template.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/interpreter.h"
#include "src/tokenizer/jinja/json.h"
#include "src/tokenizer/jinja/parser.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm {
namespace {

class JinjaTemplate : public ChatTemplate {
 public:
  JinjaTemplate(std::unique_ptr<const jinja::Template> parsed, const ChatTemplateLimits& limits)
      : parsed_(std::move(parsed)), limits_(limits) {}

  absl::StatusOr<std::string> Render(absl::string_view context_json, int64_t now_s) const override {
    jinja::Runtime runtime(limits_, now_s);
    LLM_ASSIGN_OR_RETURN(RenderedChat rendered, RenderOn(runtime, context_json));
    return std::move(rendered.text);
  }

  absl::StatusOr<RenderedChat> RenderMarked(absl::string_view context_json,
                                            int64_t now_s) const override {
    jinja::Runtime runtime(limits_, now_s);
    runtime.set_marks_literal();
    return RenderOn(runtime, context_json);
  }

 private:
  absl::StatusOr<RenderedChat> RenderOn(jinja::Runtime& runtime,
                                        absl::string_view context_json) const {
    LLM_ASSIGN_OR_RETURN(const jinja::Value context, jinja::ParseJson(runtime, context_json));
    if (!context.IsDict()) {
      return absl::InvalidArgumentError("chat template: the context is not a JSON object");
    }
    return jinja::Interpreter(*parsed_, context.dict(), runtime).Run();
  }

  const std::unique_ptr<const jinja::Template> parsed_;
  const ChatTemplateLimits limits_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Parse(
    absl::string_view source, const ChatTemplateLimits& limits) {
  if (source.size() > limits.max_template_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "chat template has ", source.size(), " bytes, the limit is ", limits.max_template_bytes));
  }
  if (!jinja::IsValidUtf8(source)) {
    return absl::InvalidArgumentError("chat template is not valid UTF-8");
  }
  LLM_ASSIGN_OR_RETURN(auto parsed, jinja::ParseTemplate(source, limits.max_depth));
  return std::make_unique<JinjaTemplate>(std::move(parsed), limits);
}

}  // namespace llm
