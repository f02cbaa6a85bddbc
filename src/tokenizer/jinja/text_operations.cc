// Views into the text, turned into values at the end.
#include "src/tokenizer/jinja/text_operations.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

constexpr size_t kNone = absl::string_view::npos;

uint64_t CountMatches(absl::string_view text, absl::string_view wanted, uint64_t limit) {
  uint64_t count = 0;
  for (size_t at = FindText(text, wanted); at != kNone && count < limit;
       at = FindText(text, wanted)) {
    ++count;
    text.remove_prefix(at + wanted.size());
  }
  return count;
}

// Python puts the new text before every character and at the end.
std::string InsertBetween(absl::string_view text, absl::string_view inserted, uint64_t count) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (count > 0) {
      out.append(inserted.data(), inserted.size());
      --count;
    }
    const size_t bytes = CodePointBytes(text[i]);
    out.append(text.data() + i, bytes);
    i += bytes;
  }
  if (count > 0) out.append(inserted.data(), inserted.size());
  return out;
}

bool IsLineEnd(uint32_t c) {
  return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

// The first white space in `text`, or the last one's end seen from the right.
size_t SpaceBegin(absl::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    if (IsSpace(NextCodePoint(text, &i))) return begin;
  }
  return text.size();
}

size_t LastWordBegin(absl::string_view text) {
  for (size_t i = text.size(); i > 0;) {
    size_t begin = i - 1;
    while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xC0u) == 0x80u) --begin;
    size_t position = begin;
    if (IsSpace(NextCodePoint(text, &position))) return i;
    i = begin;
  }
  return 0;
}

}  // namespace

size_t FindText(absl::string_view text, absl::string_view wanted) {
  if (wanted.empty()) return 0;
  if (text.size() < wanted.size()) return kNone;
  const void* found = memmem(text.data(), text.size(), wanted.data(), wanted.size());
  return found == nullptr ? kNone
                          : static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

absl::Status ChargeParts(Runtime& runtime, absl::string_view text, absl::string_view separator) {
  uint64_t parts = 1;
  if (!separator.empty()) {
    parts += CountMatches(text, separator, UINT64_MAX);
  } else {
    for (size_t i = 0; i < text.size();) parts += IsSpace(NextCodePoint(text, &i)) ? 1 : 0;
  }
  LLM_RETURN_IF_ERROR(runtime.budget().Step(parts));
  return runtime.budget().ChargeBytes(parts * 2 * sizeof(absl::string_view));
}

absl::StatusOr<std::string> ReplaceText(Runtime& runtime, absl::string_view text,
                                        absl::string_view old_text, absl::string_view new_text,
                                        int64_t count) {
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size()));
  const uint64_t limit = count < 0 ? UINT64_MAX : static_cast<uint64_t>(count);
  const uint64_t matches = old_text.empty() ? std::min<uint64_t>(text.size() + 1, limit)
                                            : CountMatches(text, old_text, limit);
  uint64_t added = 0;
  if (__builtin_mul_overflow(matches, uint64_t{new_text.size()}, &added)) added = UINT64_MAX / 2;
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(text.size() + added));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(added));
  if (old_text.empty()) return InsertBetween(text, new_text, limit);
  std::string out;
  for (uint64_t i = 0; i < matches; ++i) {
    const size_t at = FindText(text, old_text);
    out.append(text.data(), at);
    out.append(new_text.data(), new_text.size());
    text.remove_prefix(at + old_text.size());
  }
  out.append(text.data(), text.size());
  return out;
}

absl::StatusOr<Value> NewReplaced(Runtime& runtime, const Value& self, absl::string_view old_text,
                                  const Value& new_value, int64_t count, std::string replaced,
                                  bool markup) {
  const bool marked = MayBeLiteral(self) || MayBeLiteral(new_value);
  const bool plain = self.IsText() && new_value.IsText() && !old_text.empty();
  if (!runtime.marks_literal() || !marked || !plain) {
    return runtime.NewText(std::move(replaced), markup);
  }
  const absl::string_view text = self.text();
  const size_t new_size = new_value.text().size();
  TextSpans literal;
  size_t from = 0;
  size_t to = 0;
  for (int64_t i = 0; count < 0 || i < count; ++i) {
    const size_t at = FindText(text.substr(from), old_text);
    if (at == kNone) break;
    AddPart(self.text_object(), from, from + at, to, &literal);
    LLM_RETURN_IF_ERROR(runtime.Mark(new_value, to + at, to + at + new_size, &literal));
    from += at + old_text.size();
    to += at + new_size;
  }
  AddPart(self.text_object(), from, text.size(), to, &literal);
  return runtime.NewText(std::move(replaced), std::move(literal), markup);
}

std::vector<absl::string_view> SplitText(absl::string_view text, absl::string_view separator,
                                         int64_t limit, bool from_right) {
  std::vector<absl::string_view> parts;
  while (limit < 0 || static_cast<int64_t>(parts.size()) < limit) {
    const size_t at = from_right ? text.rfind(separator) : FindText(text, separator);
    if (at == kNone) break;
    const absl::string_view behind = text.substr(at + separator.size());
    parts.push_back(from_right ? behind : text.substr(0, at));
    text = from_right ? text.substr(0, at) : behind;
  }
  parts.push_back(text);
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<absl::string_view> SplitSpace(absl::string_view text, int64_t limit, bool from_right) {
  std::vector<absl::string_view> parts;
  const StripSide side = from_right ? StripSide::kRight : StripSide::kLeft;
  for (text = Strip(text, side); !text.empty(); text = Strip(text, side)) {
    if (limit >= 0 && static_cast<int64_t>(parts.size()) == limit) {
      parts.push_back(text);
      break;
    }
    const size_t cut = from_right ? LastWordBegin(text) : SpaceBegin(text);
    parts.push_back(from_right ? text.substr(cut) : text.substr(0, cut));
    text = from_right ? text.substr(0, cut) : text.substr(cut);
  }
  if (from_right) std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<absl::string_view> SplitLines(absl::string_view text, bool keep_ends) {
  std::vector<absl::string_view> lines;
  size_t begin = 0;
  for (size_t i = 0; i < text.size();) {
    const size_t end = i;
    if (!IsLineEnd(NextCodePoint(text, &i))) continue;
    if (text[end] == '\r' && i < text.size() && text[i] == '\n') ++i;
    lines.push_back(text.substr(begin, (keep_ends ? i : end) - begin));
    begin = i;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

absl::StatusOr<Value> TextList(Runtime& runtime, const Value& self,
                               const std::vector<absl::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const absl::string_view part : parts) {
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    LLM_ASSIGN_OR_RETURN(Value item, runtime.NewPart(self, part));
    items.push_back(std::move(item));
  }
  return runtime.NewList(std::move(items));
}

std::string Capitalize(absl::string_view text) {
  if (text.empty()) return "";
  const size_t first = CodePointBytes(text[0]);
  return Upper(text.substr(0, first)) + Lower(text.substr(first));
}

}  // namespace llm::jinja
