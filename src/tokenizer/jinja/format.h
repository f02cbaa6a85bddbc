// Python's two ways to format text: `"%s" % x` and `"{}".format(x)`.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// `arguments` is a tuple, a dict for %(name)s, or a single value.
absl::StatusOr<Value> PercentFormat(Runtime& runtime, const Value& format, const Value& arguments);

// Fields may be {}, {0}, {name}, each with !r, !s and a format spec; members of fields are not
// supported.
absl::StatusOr<Value> BraceFormat(Runtime& runtime, const Value& format,
                                  const Arguments& arguments);

// Python's format spec mini-language: [[fill]align][sign][#][0][width][,][.precision][type].
struct FormatSpec {
  std::string fill = " ";
  char align = '\0';
  char sign = '-';
  bool alternate = false;
  int64_t width = 0;
  char grouping = '\0';
  int64_t precision = -1;
  char type = '\0';
};

absl::StatusOr<FormatSpec> ParseFormatSpec(absl::string_view text);

// `value` laid out by `spec`. The width is charged before it is filled.
absl::StatusOr<std::string> FormatValue(Runtime& runtime, const Value& value,
                                        const FormatSpec& spec);

// Aligns as str.center, which puts the odd space elsewhere than '^' does.
inline constexpr char kCenter = 'c';

// `text` (a number's sign in front, for align '=') filled up to the width.
absl::StatusOr<std::string> PadText(Runtime& runtime, std::string text, const FormatSpec& spec,
                                    char default_align);

}  // namespace llm::jinja
