// See render.h.
#include "tests/unit/jinja/render.h"

#include "src/base/status_macros.h"

namespace llm {

const char kTestContext[] = R"({
  "s": "Hello", "n": null, "i": 7, "f": 2.5, "l": [3, 1, 2], "d": {"b": 1, "a": 2}, "t": true,
  "people": [{"name": "Bo", "age": 3}, {"name": "al", "age": 1}, {"name": "Cy", "age": 3}],
  "u": "Zürich ß 東京"})";

absl::StatusOr<std::string> Render(absl::string_view source, absl::string_view context,
                                   const ChatTemplateLimits& limits) {
  LLM_ASSIGN_OR_RETURN(const auto parsed, ChatTemplate::Parse(source, limits));
  return parsed->Render(context, 1753520703);
}

std::string Rendered(absl::string_view source) {
  const auto rendered = Render(source, kTestContext);
  return rendered.ok() ? *rendered : std::string(rendered.status().message());
}

absl::StatusCode Code(absl::string_view source, const ChatTemplateLimits& limits) {
  return Render(source, kTestContext, limits).status().code();
}

}  // namespace llm
