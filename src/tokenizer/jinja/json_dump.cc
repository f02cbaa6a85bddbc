// Walks nested values with a stack of its own, so that their depth costs no machine stack.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/json.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

void AppendEscape(uint32_t code_unit, std::string* out) {
  absl::StrAppend(out, "\\u", absl::Hex(code_unit, absl::kZeroPad4));
}

void AppendNonAscii(uint32_t c, std::string* out) {
  if (c < 0x10000) return AppendEscape(c, out);
  AppendEscape(0xD800 + ((c - 0x10000) >> 10), out);
  AppendEscape(0xDC00 + ((c - 0x10000) & 0x3FF), out);
}

std::string Quote(absl::string_view text, bool ensure_ascii) {
  std::string out = "\"";
  for (size_t i = 0; i < text.size();) {
    const size_t begin = i;
    const uint32_t c = NextCodePoint(text, &i);
    constexpr absl::string_view kPlain = "\"\\\n\r\t\b\f";
    constexpr absl::string_view kLetter = "\"\\nrtbf";
    const size_t special = c < 0x80 ? kPlain.find(static_cast<char>(c)) : absl::string_view::npos;
    if (special != absl::string_view::npos) {
      out += '\\';
      out += kLetter[special];
    } else if (c < 0x20) {
      AppendEscape(c, &out);
    } else if (c >= 0x80 && ensure_ascii) {
      AppendNonAscii(c, &out);
    } else {
      out.append(text.data() + begin, i - begin);
    }
  }
  out += '"';
  return out;
}

std::string NumberJson(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
  return FloatRepr(number);
}

class Dumper {
 public:
  Dumper(Runtime& runtime, const JsonStyle& style) : runtime_(runtime), style_(style) {}

  absl::Status Dump(const Value& value) {
    LLM_RETURN_IF_ERROR(Begin(value));
    while (!open_.empty()) LLM_RETURN_IF_ERROR(Continue());
    return absl::OkStatus();
  }

  std::string TakeText() { return std::move(out_); }

 private:
  // A list or dict that is being written. Exactly one of the two holds its members.
  struct Container {
    const std::vector<Value>* items = nullptr;
    std::vector<const Dict::Entry*> entries;
    size_t next = 0;
    size_t size() const { return items != nullptr ? items->size() : entries.size(); }
  };

  // Writes a scalar, or opens a container.
  absl::Status Begin(const Value& value) {
    LLM_RETURN_IF_ERROR(runtime_.budget().Step());
    if (value.IsText()) return AppendQuoted(value.text());
    if (value.IsDict()) return OpenDict(value.dict());
    if (value.IsSequence() && value.sequence()->IsListOrTuple()) {
      if (value.sequence()->items.empty()) return Append("[]");
      open_.emplace_back().items = &value.sequence()->items;
      return Append("[");
    }
    return AppendScalar(value);
  }

  // Writes the next member of the innermost container, or closes it.
  absl::Status Continue() {
    Container& container = open_.back();
    const bool list = container.items != nullptr;
    if (container.next == container.size()) {
      open_.pop_back();
      LLM_RETURN_IF_ERROR(NewLine());
      return Append(list ? "]" : "}");
    }
    const size_t index = container.next++;
    if (index > 0) LLM_RETURN_IF_ERROR(Append(style_.item_separator));
    LLM_RETURN_IF_ERROR(NewLine());
    if (list) return Begin((*container.items)[index]);
    const Dict::Entry& entry = *container.entries[index];
    LLM_RETURN_IF_ERROR(AppendKey(entry.key));
    LLM_RETURN_IF_ERROR(Append(style_.key_separator));
    return Begin(entry.value);  // may move `container`
  }

  absl::Status OpenDict(const Dict& dict) {
    if (dict.entries.empty()) return Append("{}");
    LLM_RETURN_IF_ERROR(runtime_.budget().Step(dict.entries.size() / 16));
    Container& container = open_.emplace_back();
    for (const Dict::Entry& entry : dict.entries) container.entries.push_back(&entry);
    if (style_.sort_keys) LLM_RETURN_IF_ERROR(Sort(&container.entries));
    return Append("{");
  }

  absl::Status Append(absl::string_view text) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(text.size()));
    out_.append(text.data(), text.size());
    return absl::OkStatus();
  }

  absl::Status AppendQuoted(absl::string_view text) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(text.size() * 2));
    return Append(Quote(text, style_.ensure_ascii));
  }

  absl::Status AppendScalar(const Value& value) {
    if (value.IsNone()) return Append("null");
    if (value.IsBool()) return Append(value.boolean() ? "true" : "false");
    if (value.IsInt()) return Append(absl::StrCat(value.integer()));
    if (value.IsFloat()) return Append(NumberJson(value.number()));
    return absl::InvalidArgumentError(
        absl::StrCat("'", value.TypeName(), "' cannot be written as JSON"));
  }

  // Scalars become text, as in Python; so a key `true` and a key "true" may both appear.
  absl::Status AppendKey(const Value& key) {
    if (key.IsText()) return AppendQuoted(key.text());
    LLM_RETURN_IF_ERROR(Append("\""));
    LLM_RETURN_IF_ERROR(AppendScalar(key));
    return Append("\"");
  }

  absl::Status NewLine() {
    if (!style_.pretty) return absl::OkStatus();
    LLM_RETURN_IF_ERROR(Append("\n"));
    for (size_t i = 0; i < open_.size(); ++i) LLM_RETURN_IF_ERROR(Append(style_.indent));
    return absl::OkStatus();
  }

  absl::Status Sort(std::vector<const Dict::Entry*>* entries) {
    for (const Dict::Entry* entry : *entries) {
      const bool text = entry->key.IsText();
      if (!text) return absl::InvalidArgumentError("only string keys can be sorted for JSON");
      LLM_RETURN_IF_ERROR(runtime_.budget().Scan(entry->key.text().size()));
    }
    std::sort(entries->begin(), entries->end(), [](const auto* a, const auto* b) {
      return a->key.text() < b->key.text();  // the order of bytes is that of code points
    });
    return absl::OkStatus();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  std::vector<Container> open_;
};

}  // namespace

absl::StatusOr<std::string> DumpJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Dumper dumper(runtime, style);
  LLM_RETURN_IF_ERROR(dumper.Dump(value));
  return dumper.TakeText();
}

}  // namespace llm::jinja
