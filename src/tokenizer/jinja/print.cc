// Recursion follows the nesting of values, which the runtime bounds; namespaces can be circular,
// hence the guard.
#include "src/tokenizer/jinja/print.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/loop.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

absl::Status Append(Runtime& runtime, absl::string_view text, std::string* out) {
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(text.size()));
  out->append(text.data(), text.size());
  return absl::OkStatus();
}

bool IsPrintable(uint32_t c) {
  const bool format = c == 0xAD || (c >= 0x200B && c <= 0x200F) || (c >= 0x202A && c <= 0x202E) ||
                      (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
  const bool private_use = (c >= 0xE000 && c <= 0xF8FF) || c >= 0xF0000;
  return c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0) && !format && !private_use &&
         (c < 0x80 || !IsSpace(c));
}

void AppendHex(uint32_t c, std::string* out) {
  if (c < 0x100) {
    absl::StrAppend(out, "\\x", absl::Hex(c, absl::kZeroPad2));
  } else if (c < 0x10000) {
    absl::StrAppend(out, "\\u", absl::Hex(c, absl::kZeroPad4));
  } else {
    absl::StrAppend(out, "\\U", absl::Hex(c, absl::kZeroPad8));
  }
}

// Quotes as Python does: single quotes unless the text has some and no double ones.
std::string QuotedRepr(absl::string_view text) {
  const bool single =
      text.find('\'') == absl::string_view::npos || text.find('"') != absl::string_view::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = NextCodePoint(text, &i);
    if (c == '\\' || c == static_cast<uint32_t>(quote)) {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (IsPrintable(c)) {
      out.append(text.data() + begin, i - begin);
    } else {
      AppendHex(c, &out);
    }
  }
  out += quote;
  return out;
}

struct Brackets {
  absl::string_view open;
  absl::string_view close;
};

Brackets BracketsOf(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::kTuple:
      return {"(", ")"};
    case SequenceKind::kKeys:
      return {"dict_keys([", "])"};
    case SequenceKind::kValues:
      return {"dict_values([", "])"};
    case SequenceKind::kItems:
      return {"dict_items([", "])"};
    default:
      return {"[", "]"};
  }
}

std::string RangeRepr(const std::vector<Value>& items) {
  const int64_t first = items.empty() ? 0 : items.front().integer();
  const int64_t step = items.size() < 2 ? 1 : items[1].integer() - first;
  const int64_t end = items.empty() ? 0 : items.back().integer() + step;
  return absl::StrCat("range(", first, ", ", end, step == 1 ? "" : absl::StrCat(", ", step), ")");
}

std::string CallableRepr(const Callable& callable) {
  if (callable.macro != nullptr) return absl::StrCat("<Macro ", QuotedRepr(callable.name), ">");
  return absl::StrCat("<built-in function ", callable.name, ">");
}

std::string ScalarRepr(const Value& value) {
  if (value.IsUndefined()) return "Undefined";
  if (value.IsNone()) return "None";
  if (value.IsBool()) return value.boolean() ? "True" : "False";
  if (value.IsInt()) return absl::StrCat(value.integer());
  if (value.IsFloat()) return FloatRepr(value.number());
  if (value.IsCallable()) return CallableRepr(value.callable());
  return absl::StrCat("<LoopContext ", value.loop()->index + 1, "/",
                      value.loop()->items->items.size(), ">");
}

class Printer {
 public:
  Printer(Runtime& runtime, std::string* out) : runtime_(runtime), out_(out) {}

  absl::Status Print(const Value& value) {
    LLM_RETURN_IF_ERROR(Begin(value));
    while (!open_.empty()) LLM_RETURN_IF_ERROR(Continue());
    return absl::OkStatus();
  }

 private:
  // A container that is being printed; exactly one of the pointers is set.
  struct Container {
    const Sequence* sequence = nullptr;
    const Dict* dict = nullptr;
    const Namespace* members = nullptr;
    absl::string_view close;
    size_t next = 0;

    size_t size() const {
      if (sequence != nullptr) return sequence->items.size();
      return dict != nullptr ? dict->entries.size() : members->members.size();
    }
  };

  // Prints a scalar, or opens a container.
  absl::Status Begin(const Value& value) {
    LLM_RETURN_IF_ERROR(runtime_.budget().Step());
    if (value.IsText()) return PrintText(value);
    if (value.IsDict()) return Open("{", {nullptr, &value.dict(), nullptr, "}"});
    if (value.IsNamespace()) {
      return Open("<Namespace {", {nullptr, nullptr, value.members(), "}>"});
    }
    if (!value.IsSequence()) return Append(runtime_, ScalarRepr(value), out_);
    const Sequence& sequence = *value.sequence();
    if (sequence.kind == SequenceKind::kGenerator) {
      return Append(runtime_, "<generator object>", out_);
    }
    if (sequence.kind == SequenceKind::kRange) {
      return Append(runtime_, RangeRepr(sequence.items), out_);
    }
    const Brackets brackets = BracketsOf(sequence.kind);
    const bool single = sequence.kind == SequenceKind::kTuple && sequence.items.size() == 1;
    return Open(brackets.open, {&sequence, nullptr, nullptr, single ? ",)" : brackets.close});
  }

  absl::Status Open(absl::string_view bracket, Container container) {
    if (open_.size() >= 2 * size_t{runtime_.budget().max_value_depth()}) {
      return absl::ResourceExhaustedError("chat template: a circular value cannot be printed");
    }
    open_.push_back(container);
    return Append(runtime_, bracket, out_);
  }

  // Prints the next member of the innermost container, or closes it.
  absl::Status Continue() {
    Container& container = open_.back();
    if (container.next == container.size()) {
      const absl::string_view close = container.close;
      open_.pop_back();
      return Append(runtime_, close, out_);
    }
    const size_t index = container.next++;
    if (index > 0) LLM_RETURN_IF_ERROR(Append(runtime_, ", ", out_));
    if (container.sequence != nullptr) return Begin(container.sequence->items[index]);
    if (container.dict != nullptr) {
      const Dict::Entry& entry = container.dict->entries[index];
      LLM_RETURN_IF_ERROR(Begin(entry.key));  // a key is a scalar: nothing opens
      LLM_RETURN_IF_ERROR(Append(runtime_, ": ", out_));
      return Begin(entry.value);
    }
    const auto& [name, value] = container.members->members[index];
    LLM_RETURN_IF_ERROR(Append(runtime_, absl::StrCat(QuotedRepr(name), ": "), out_));
    return Begin(value);
  }

  absl::Status PrintText(const Value& value) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(value.text().size() * 2));
    const std::string repr = QuotedRepr(value.text());
    return Append(runtime_, value.IsMarkup() ? absl::StrCat("Markup(", repr, ")") : repr, out_);
  }

  Runtime& runtime_;
  std::string* out_;
  std::vector<Container> open_;
};

}  // namespace

std::string FloatRepr(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof(buffer), number, std::chars_format::scientific);
  const absl::string_view all(buffer, static_cast<size_t>(end.ptr - buffer));
  const size_t e = all.find('e');
  int exponent = 0;
  const bool negative_exponent = all[e + 1] == '-';
  std::from_chars(buffer + e + 2, end.ptr, exponent);
  if (negative_exponent) exponent = -exponent;
  if (exponent < -4 || exponent >= 16) return std::string(all);
  char fixed[400];
  const auto fixed_end =
      std::to_chars(fixed, fixed + sizeof(fixed), number, std::chars_format::fixed);
  std::string out(fixed, fixed_end.ptr);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string EscapeHtml(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

absl::Status AppendRepr(Runtime& runtime, const Value& value, std::string* out) {
  return Printer(runtime, out).Print(value);
}

absl::Status AppendText(Runtime& runtime, const Value& value, std::string* out) {
  if (value.IsUndefined()) return absl::OkStatus();
  if (value.IsText()) return Append(runtime, value.text(), out);
  return AppendRepr(runtime, value, out);
}

absl::StatusOr<std::string> ToText(Runtime& runtime, const Value& value) {
  std::string out;
  LLM_RETURN_IF_ERROR(AppendText(runtime, value, &out));
  return out;
}

}  // namespace llm::jinja
