// Methods of strings.
#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/format.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/text_operations.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

template <std::string (*kChange)(absl::string_view)>
Result Change(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(2 * self.text().size()));
  return runtime.NewText(kChange(self.text()), self.IsMarkup());
}

std::string SwapCase(absl::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = NextCodePoint(text, &i);
    AppendCodePoint(ToUpper(c) != c ? ToUpper(c) : ToLower(c), &out);
  }
  return out;
}

// str.title: every letter after a non-letter begins a word.
std::string Title(absl::string_view text) {
  std::string out;
  bool in_word = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = NextCodePoint(text, &i);
    AppendCodePoint(in_word ? ToLower(c) : ToUpper(c), &out);
    in_word = ToUpper(c) != c || ToLower(c) != c;
  }
  return out;
}

template <StripSide kSide>
Result StripMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"chars"}));
  const bool spaces = !bound.Has(0) || bound[0].IsNone();
  if (spaces) return runtime.NewPart(self, Strip(self.text(), kSide), self.IsMarkup());
  LLM_ASSIGN_OR_RETURN(const absl::string_view chars, bound.TextOr(0, ""));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(self.text().size() * chars.size()));
  return runtime.NewPart(self, Strip(self.text(), kSide, &chars), self.IsMarkup());
}

template <bool kFromRight>
Result SplitMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"sep", "maxsplit"}));
  LLM_ASSIGN_OR_RETURN(const int64_t limit, bound.IntOr(1, -1));
  if (!bound.Has(0) || bound[0].IsNone()) {
    LLM_RETURN_IF_ERROR(ChargeParts(runtime, self.text(), ""));
    return TextList(runtime, self, SplitSpace(self.text(), limit, kFromRight));
  }
  LLM_ASSIGN_OR_RETURN(const absl::string_view separator, bound.TextOr(0, ""));
  if (separator.empty()) return absl::InvalidArgumentError("empty separator");
  LLM_RETURN_IF_ERROR(ChargeParts(runtime, self.text(), separator));
  // Searching from the right compares the separator at every position.
  if (kFromRight) LLM_RETURN_IF_ERROR(runtime.budget().Scan(self.text().size() * separator.size()));
  return TextList(runtime, self, SplitText(self.text(), separator, limit, kFromRight));
}

Result SplitLinesMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"keepends"}));
  LLM_RETURN_IF_ERROR(ChargeParts(runtime, self.text(), ""));
  return TextList(runtime, self, SplitLines(self.text(), bound.TruthOr(0, false)));
}

template <bool kFromRight>
Result PartitionMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"sep"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view separator, bound.TextOr(0, ""));
  if (separator.empty()) return absl::InvalidArgumentError("empty separator");
  const absl::string_view text = self.text();
  if (kFromRight) LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size() * separator.size()));
  const size_t at = kFromRight ? text.rfind(separator) : FindText(text, separator);
  std::vector<absl::string_view> parts = {text, "", ""};
  if (at != absl::string_view::npos) {
    parts = {text.substr(0, at), separator, text.substr(at + separator.size())};
  } else if (kFromRight) {
    parts = {"", "", text};
  }
  LLM_ASSIGN_OR_RETURN(const Value list, TextList(runtime, self, parts));
  return runtime.NewList(list.sequence()->items, SequenceKind::kTuple);
}

// The part of the text that optional start and end arguments (at `first` and behind) choose.
absl::StatusOr<absl::string_view> Window(const Value& self, const Bound& bound, size_t first,
                                         size_t* begin) {
  const absl::string_view text = self.text();
  *begin = 0;
  if (!bound.Has(first) && !bound.Has(first + 1)) return text;
  const auto length = static_cast<int64_t>(CodePointCount(text));
  const auto resolve = [&bound, length](size_t i, int64_t fallback) -> absl::StatusOr<int64_t> {
    if (!bound.Has(i) || bound[i].IsNone()) return fallback;
    LLM_ASSIGN_OR_RETURN(const int64_t given, bound.IntOr(i, fallback));
    return given < 0 ? std::max<int64_t>(given + length, 0) : given;
  };
  LLM_ASSIGN_OR_RETURN(const int64_t start, resolve(first, 0));
  LLM_ASSIGN_OR_RETURN(const int64_t end, resolve(first + 1, length));
  *begin = ByteOffset(text, static_cast<size_t>(start));
  const size_t end_byte = ByteOffset(text, static_cast<size_t>(end));
  return end_byte < *begin ? absl::string_view() : text.substr(*begin, end_byte - *begin);
}

template <bool kAtEnd>
Result AffixMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"affix", "start", "end"}, 1));
  size_t begin = 0;
  LLM_ASSIGN_OR_RETURN(const absl::string_view text, Window(self, bound, 1, &begin));
  const auto matches = [text](absl::string_view affix) {
    return kAtEnd ? absl::EndsWith(text, affix) : absl::StartsWith(text, affix);
  };
  if (bound[0].IsText()) return Value::Bool(matches(bound[0].text()));
  const bool tuple = bound[0].IsSequence() && bound[0].sequence()->kind == SequenceKind::kTuple;
  if (!tuple) return absl::InvalidArgumentError("needs a string or a tuple of strings");
  for (const Value& affix : bound[0].sequence()->items) {
    if (!affix.IsText()) return absl::InvalidArgumentError("needs a tuple of strings");
    LLM_RETURN_IF_ERROR(runtime.budget().Scan(affix.text().size()));
    if (matches(affix.text())) return Value::Bool(true);
  }
  return Value::Bool(false);
}

template <bool kFromRight, bool kMustExist>
Result FindMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"sub", "start", "end"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view wanted, bound.TextOr(0, ""));
  size_t begin = 0;
  LLM_ASSIGN_OR_RETURN(const absl::string_view text, Window(self, bound, 1, &begin));
  if (kFromRight) LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size() * wanted.size()));
  const size_t at = kFromRight ? text.rfind(wanted) : FindText(text, wanted);
  if (at != absl::string_view::npos) {
    return Value::Int(static_cast<int64_t>(CodePointCount(self.text().substr(0, begin + at))));
  }
  if (kMustExist) return absl::InvalidArgumentError("substring not found");
  return Value::Int(-1);
}

Result CountMethod(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"sub", "start", "end"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view wanted, bound.TextOr(0, ""));
  size_t begin = 0;
  LLM_ASSIGN_OR_RETURN(absl::string_view text, Window(self, bound, 1, &begin));
  int64_t count = 0;
  if (wanted.empty()) return Value::Int(static_cast<int64_t>(CodePointCount(text)) + 1);
  for (size_t at = FindText(text, wanted); at != absl::string_view::npos;
       at = FindText(text, wanted)) {
    text.remove_prefix(at + wanted.size());
    ++count;
  }
  return Value::Int(count);
}

Result ReplaceMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"old", "new", "count"}, 2));
  LLM_ASSIGN_OR_RETURN(const absl::string_view old_text, bound.TextOr(0, ""));
  LLM_ASSIGN_OR_RETURN(const absl::string_view new_text, bound.TextOr(1, ""));
  LLM_ASSIGN_OR_RETURN(const int64_t count, bound.IntOr(2, -1));
  LLM_ASSIGN_OR_RETURN(std::string out,
                       ReplaceText(runtime, self.text(), old_text, new_text, count));
  return NewReplaced(runtime, self, old_text, bound[1], count, std::move(out), self.IsMarkup());
}

Result JoinMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"iterable"}, 1));
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(bound[0]));
  std::string out;
  TextSpans literal;
  for (size_t i = 0; i < items->items.size(); ++i) {
    const Value& item = items->items[i];
    if (!item.IsText()) {
      return absl::InvalidArgumentError(absl::StrCat("item ", i, " is not a string"));
    }
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(self.text().size() + item.text().size()));
    size_t begin = out.size();
    if (i > 0) {
      out.append(self.text().data(), self.text().size());
      LLM_RETURN_IF_ERROR(runtime.Mark(self, begin, out.size(), &literal));
      begin = out.size();
    }
    out.append(item.text().data(), item.text().size());
    LLM_RETURN_IF_ERROR(runtime.Mark(item, begin, out.size(), &literal));
  }
  return runtime.NewText(std::move(out), std::move(literal));
}

Result FormatMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return BraceFormat(runtime, self, arguments);
}

template <char kAlign>
Result PadMethod(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"width", "fillchar"}, 1));
  FormatSpec spec;
  LLM_ASSIGN_OR_RETURN(spec.width, bound.IntOr(0, 0));
  LLM_ASSIGN_OR_RETURN(const absl::string_view fill, bound.TextOr(1, kAlign == '=' ? "0" : " "));
  if (CodePointCount(fill) != 1) return absl::InvalidArgumentError("fill must be one character");
  spec.fill = std::string(fill);
  spec.align = kAlign;
  LLM_ASSIGN_OR_RETURN(std::string text, PadText(runtime, std::string(self.text()), spec, kAlign));
  return runtime.NewText(std::move(text));
}

template <bool kAtEnd>
Result RemoveAffix(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"affix"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view affix, bound.TextOr(0, ""));
  absl::string_view text = self.text();
  if (kAtEnd && absl::EndsWith(text, affix)) text.remove_suffix(affix.size());
  if (!kAtEnd && absl::StartsWith(text, affix)) text.remove_prefix(affix.size());
  return runtime.NewPart(self, text);
}

bool IsDigit(uint32_t c) { return c >= '0' && c <= '9'; }
// Beyond ASCII, letters are told by having case, or by standing in a block of letters without (CJK
// and later).
bool IsLetter(uint32_t c) {
  return ToUpper(c) != c || ToLower(c) != c || (c >= 0x3041 && c < 0xE000);
}
bool IsLetterOrDigit(uint32_t c) { return IsDigit(c) || IsLetter(c); }

template <bool (*kKind)(uint32_t)>
Result AllAre(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  const absl::string_view text = self.text();
  for (size_t i = 0; i < text.size();) {
    if (!kKind(NextCodePoint(text, &i))) return Value::Bool(false);
  }
  return Value::Bool(!text.empty());
}

template <bool kUpper>
Result CaseTest(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const bool holds,
                       runtime.CallTest(kUpper ? "upper" : "lower", self, arguments));
  return Value::Bool(holds);
}

constexpr NamedBuiltin kMethods[] = {
    {"capitalize", Change<Capitalize>},
    {"casefold", Change<Lower>},
    {"center", PadMethod<kCenter>},
    {"count", CountMethod},
    {"endswith", AffixMethod<true>},
    {"find", FindMethod<false, false>},
    {"format", FormatMethod},
    {"index", FindMethod<false, true>},
    {"isalnum", AllAre<IsLetterOrDigit>},
    {"isalpha", AllAre<IsLetter>},
    {"isdecimal", AllAre<IsDigit>},
    {"isdigit", AllAre<IsDigit>},
    {"islower", CaseTest<false>},
    {"isnumeric", AllAre<IsDigit>},
    {"isspace", AllAre<IsSpace>},
    {"isupper", CaseTest<true>},
    {"join", JoinMethod},
    {"ljust", PadMethod<'<'>},
    {"lower", Change<Lower>},
    {"lstrip", StripMethod<StripSide::kLeft>},
    {"partition", PartitionMethod<false>},
    {"removeprefix", RemoveAffix<false>},
    {"removesuffix", RemoveAffix<true>},
    {"replace", ReplaceMethod},
    {"rfind", FindMethod<true, false>},
    {"rindex", FindMethod<true, true>},
    {"rjust", PadMethod<'>'>},
    {"rpartition", PartitionMethod<true>},
    {"rsplit", SplitMethod<true>},
    {"rstrip", StripMethod<StripSide::kRight>},
    {"split", SplitMethod<false>},
    {"splitlines", SplitLinesMethod},
    {"startswith", AffixMethod<false>},
    {"strip", StripMethod<StripSide::kBoth>},
    {"swapcase", Change<SwapCase>},
    {"title", Change<Title>},
    {"upper", Change<Upper>},
    {"zfill", PadMethod<'='>},
};

}  // namespace

Builtin FindTextMethod(absl::string_view name) { return FindIn(kMethods, name); }

}  // namespace llm::jinja
