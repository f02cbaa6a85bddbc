// Any template with any context gives text or a status: the input is both, split at the first zero
// byte.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "src/tokenizer/chat_template.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const absl::string_view context =
      end == absl::string_view::npos ? absl::string_view("{}") : input.substr(end + 1);
  llm::ChatTemplateLimits limits;  // small, so that a run is short and a breach is seen
  limits.max_template_bytes = 1u << 16;
  limits.max_steps = 20'000;
  limits.max_output_bytes = 1u << 16;
  limits.max_value_bytes = 1u << 20;
  const auto parsed = llm::ChatTemplate::Parse(input.substr(0, end), limits);
  if (!parsed.ok()) return 0;
  (void)(*parsed)->Render(context, 1753520703);
  const auto marked = (*parsed)->RenderMarked(context, 1753520703);
  if (!marked.ok()) return 0;
  size_t at = 0;
  for (const llm::TextSpan& span : marked->literal) {
    const bool sound = (at == 0 || span.begin > at) && span.begin < span.end;
    if (!sound || span.end > marked->text.size()) __builtin_trap();
    at = span.end;
  }
  return 0;
}
