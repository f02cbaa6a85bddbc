// Filters that make text.
#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/format.h"
#include "src/tokenizer/jinja/json.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/text_operations.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// str(self) through `change`; markup stays markup.
template <typename Change>
Result Changed(Runtime& runtime, const Value& self, const Arguments& arguments, Change change) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size()));
  return runtime.NewText(change(text), self.IsMarkup());
}

Result UpperFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Changed(runtime, self, arguments, Upper);
}

Result LowerFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Changed(runtime, self, arguments, Lower);
}

Result CapitalizeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Changed(runtime, self, arguments, Capitalize);
}

// Words begin after white space, hyphens and opening brackets.
std::string TitleCase(absl::string_view text) {
  std::string out;
  bool begins = true;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = NextCodePoint(text, &i);
    AppendCodePoint(begins ? ToUpper(c) : ToLower(c), &out);
    begins = IsSpace(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  }
  return out;
}

Result TitleFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Changed(runtime, self, arguments, TitleCase);
}

Result StringFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  if (self.IsText()) return self;
  LLM_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  return runtime.NewText(std::move(text));
}

Result SafeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  if (self.IsText()) return runtime.NewPart(self, self.text(), true);
  LLM_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  return runtime.NewText(std::move(text), true);
}

Result ForceEscapeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(5 * text.size()));
  return runtime.NewText(EscapeHtml(text), true);
}

Result EscapeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return self.IsMarkup() ? Result(self) : ForceEscapeFilter(runtime, self, arguments);
}

Result TrimFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"chars"}));
  LLM_ASSIGN_OR_RETURN(const std::string printed, ToText(runtime, self));
  const absl::string_view text = self.IsText() ? self.text() : printed;
  const bool spaces = !bound.Has(0) || bound[0].IsNone();
  if (spaces) return runtime.NewPart(self, Strip(text, StripSide::kBoth), self.IsMarkup());
  LLM_ASSIGN_OR_RETURN(const absl::string_view chars, bound.TextOr(0, ""));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size() * chars.size()));
  return runtime.NewPart(self, Strip(text, StripSide::kBoth, &chars), self.IsMarkup());
}

Result ReplaceFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"old", "new", "count"}, 2));
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_ASSIGN_OR_RETURN(const std::string old_text, ToText(runtime, bound[0]));
  LLM_ASSIGN_OR_RETURN(const std::string new_text, ToText(runtime, bound[1]));
  int64_t count = -1;
  if (bound.Has(2) && !bound[2].IsNone()) {
    LLM_ASSIGN_OR_RETURN(count, bound.IntOr(2, -1));
  }
  LLM_ASSIGN_OR_RETURN(std::string out, ReplaceText(runtime, text, old_text, new_text, count));
  return NewReplaced(runtime, self, old_text, bound[1], count, std::move(out), false);
}

Result CenterFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"width"}));
  FormatSpec spec;
  spec.align = kCenter;
  LLM_ASSIGN_OR_RETURN(spec.width, bound.IntOr(0, 80));
  LLM_ASSIGN_OR_RETURN(std::string text, ToText(runtime, self));
  LLM_ASSIGN_OR_RETURN(text, PadText(runtime, std::move(text), spec, kCenter));
  return runtime.NewText(std::move(text));
}

Result FormatFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (!self.IsText()) return absl::InvalidArgumentError("needs a string");
  if (!arguments.positional.empty() && !arguments.named.empty()) {
    return absl::InvalidArgumentError("positional and named arguments together");
  }
  if (arguments.named.empty()) {
    LLM_ASSIGN_OR_RETURN(const Value tuple,
                         runtime.NewList(arguments.positional, SequenceKind::kTuple));
    return PercentFormat(runtime, self, tuple);
  }
  Dict dict;
  for (const auto& [name, value] : arguments.named) {
    LLM_ASSIGN_OR_RETURN(Value key, runtime.NewText(name));
    LLM_RETURN_IF_ERROR(runtime.AddEntry(&dict, std::move(key), value));
  }
  LLM_ASSIGN_OR_RETURN(const Value named, runtime.NewDict(std::move(dict)));
  return PercentFormat(runtime, self, named);
}

absl::StatusOr<std::string> Indentation(Runtime& runtime, const Bound& bound, size_t i) {
  if (bound.Has(i) && bound[i].IsText()) return std::string(bound[i].text());
  LLM_ASSIGN_OR_RETURN(const int64_t width, bound.IntOr(i, 4));
  const auto spaces = static_cast<uint64_t>(std::max<int64_t>(width, 0));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(spaces));
  return std::string(spaces, ' ');
}

Result IndentFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"width", "first", "blank"}));
  if (self.IsUndefined()) return absl::InvalidArgumentError(self.UndefinedReason());
  if (!self.IsText()) return absl::InvalidArgumentError("needs a string");
  LLM_ASSIGN_OR_RETURN(const std::string indentation, Indentation(runtime, bound, 0));
  const bool blank = bound.TruthOr(2, false);
  // Jinja appends a line end first, so that a final one yields an empty last line.
  const std::string text = absl::StrCat(self.text(), "\n");
  LLM_RETURN_IF_ERROR(ChargeParts(runtime, text, "\n"));
  std::string out;
  bool first_line = true;
  for (const absl::string_view line : SplitLines(text, false)) {
    const bool indented = first_line ? bound.TruthOr(1, false) : blank || !line.empty();
    LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(indentation.size() + line.size() + 1));
    if (!first_line) out += '\n';
    if (indented) out += indentation;
    out.append(line.data(), line.size());
    first_line = false;
  }
  return runtime.NewText(std::move(out), self.IsMarkup());
}

Result TruncateFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound,
                       Bind(arguments, {"length", "killwords", "end", "leeway"}));
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_ASSIGN_OR_RETURN(const int64_t length, bound.IntOr(0, 255));
  LLM_ASSIGN_OR_RETURN(const absl::string_view end, bound.TextOr(2, "..."));
  LLM_ASSIGN_OR_RETURN(const int64_t leeway, bound.IntOr(3, 5));
  const auto end_length = static_cast<int64_t>(CodePointCount(end));
  const auto text_length = static_cast<int64_t>(CodePointCount(text));
  if (length < end_length || leeway < 0) {
    return absl::InvalidArgumentError("length is shorter than the end, or leeway is negative");
  }
  if (text_length - leeway <= length) return runtime.NewText(text);
  absl::string_view kept =
      absl::string_view(text).substr(0, ByteOffset(text, static_cast<size_t>(length - end_length)));
  if (!bound.TruthOr(1, false)) kept = kept.substr(0, kept.rfind(' '));
  return runtime.NewText(absl::StrCat(kept, end));
}

Result WordCountFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_RETURN_IF_ERROR(ChargeParts(runtime, text, ""));
  return Value::Int(static_cast<int64_t>(SplitSpace(text, -1, false).size()));
}

Result UrlEncodeFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(3 * text.size()));
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain =
        absl::ascii_isalnum(byte) || absl::string_view("_.-~/").find(c) != absl::string_view::npos;
    if (plain) {
      out += c;
    } else {
      absl::StrAppend(&out, "%",
                      absl::AsciiStrToUpper(absl::StrCat(absl::Hex(byte, absl::kZeroPad2))));
    }
  }
  return runtime.NewText(std::move(out));
}

absl::Status SetSeparators(Runtime& runtime, const Value& value, JsonStyle* style) {
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(value));
  if (items->items.size() != 2 || !items->items[0].IsText() || !items->items[1].IsText()) {
    return absl::InvalidArgumentError("separators must be two strings");
  }
  style->item_separator = std::string(items->items[0].text());
  style->key_separator = std::string(items->items[1].text());
  return absl::OkStatus();
}

// As transformers defines it: no HTML escapes, and the options of json.dumps.
Result ToJsonFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound,
                       Bind(arguments, {"ensure_ascii", "indent", "separators", "sort_keys"}));
  JsonStyle style;
  style.ensure_ascii = bound.TruthOr(0, false);
  style.sort_keys = bound.TruthOr(3, false);
  if (bound.Has(1) && !bound[1].IsNone()) {
    style.pretty = true;
    style.item_separator = std::string(1, ',');
    LLM_ASSIGN_OR_RETURN(style.indent, Indentation(runtime, bound, 1));
  }
  if (bound.Has(2) && !bound[2].IsNone()) {
    LLM_RETURN_IF_ERROR(SetSeparators(runtime, bound[2], &style));
  }
  LLM_ASSIGN_OR_RETURN(std::string text, DumpJson(runtime, self, style));
  return runtime.NewText(std::move(text));
}

constexpr NamedBuiltin kFilters[] = {
    {"capitalize", CapitalizeFilter},
    {"center", CenterFilter},
    {"e", EscapeFilter},
    {"escape", EscapeFilter},
    {"forceescape", ForceEscapeFilter},
    {"format", FormatFilter},
    {"indent", IndentFilter},
    {"lower", LowerFilter},
    {"replace", ReplaceFilter},
    {"safe", SafeFilter},
    {"string", StringFilter},
    {"title", TitleFilter},
    {"tojson", ToJsonFilter},
    {"trim", TrimFilter},
    {"truncate", TruncateFilter},
    {"upper", UpperFilter},
    {"urlencode", UrlEncodeFilter},
    {"wordcount", WordCountFilter},
};

}  // namespace

absl::Span<const NamedBuiltin> TextFilters() { return kFilters; }

}  // namespace llm::jinja
