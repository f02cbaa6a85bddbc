// Renders a model's chat template (Jinja) within limits on steps, depth and output. Parsed once;
// Render is const and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/text_span.h"

namespace llm {

struct ChatTemplateLimits {
  uint64_t max_template_bytes = 1u << 20;
  uint64_t max_steps = 10'000'000;  // evaluated nodes and loop rounds
  uint32_t max_depth =
      128;  // nesting of expressions and blocks when parsing, of calls when rendering
  uint64_t max_output_bytes = 1u << 26;
  uint64_t max_value_bytes = 1u << 28;  // strings and lists built while rendering, together
};

struct RenderedChat {
  std::string text;
  TextSpans literal;  // what came out of the chat's data (see RenderMarked)
};

class ChatTemplate {
 public:
  // INVALID_ARGUMENT with line and reason for a template that does not parse.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Parse(absl::string_view source,
                                                             const ChatTemplateLimits& limits);
  virtual ~ChatTemplate() = default;

  // `context_json`: a JSON object whose members become the template's variables (messages,
  // add_generation_prompt, tools, bos_token, eos_token, ...). `now_s` (seconds since 1970, UTC) is
  // what strftime_now sees. INVALID_ARGUMENT: bad JSON, an undefined operation, or the template's
  // own raise_exception; RESOURCE_EXHAUSTED: a limit.
  virtual absl::StatusOr<std::string> Render(absl::string_view context_json,
                                             int64_t now_s) const = 0;
  // The same, and which bytes came out of the context's arrays and objects, however the template
  // cut and joined them, rather than out of the template, a variable that is a string, or the role
  // of a message. What a built-in made of both counts as data.
  virtual absl::StatusOr<RenderedChat> RenderMarked(absl::string_view context_json,
                                                    int64_t now_s) const = 0;
};

}  // namespace llm
