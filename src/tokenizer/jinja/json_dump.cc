// Recursion follows the nesting of the value; a depth guard bounds it.
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
    DepthGuard depth(runtime_.budget());
    LLM_RETURN_IF_ERROR(depth.status());
    LLM_RETURN_IF_ERROR(runtime_.budget().Step());
    if (value.IsText()) return DumpText(value.text());
    if (value.IsDict()) return DumpDict(value.dict());
    if (value.IsSequence() && value.sequence()->IsListOrTuple()) {
      return DumpList(value.sequence()->items);
    }
    if (value.IsNone()) return Append("null");
    if (value.IsBool()) return Append(value.boolean() ? "true" : "false");
    if (value.IsInt()) return Append(absl::StrCat(value.integer()));
    if (value.IsFloat()) return Append(NumberJson(value.number()));
    return absl::InvalidArgumentError(
        absl::StrCat("'", value.TypeName(), "' cannot be written as JSON"));
  }

  std::string TakeText() { return std::move(out_); }

 private:
  absl::Status Append(absl::string_view text) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(text.size()));
    out_.append(text.data(), text.size());
    return absl::OkStatus();
  }

  absl::Status DumpText(absl::string_view text) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(text.size() * 2));
    return Append(Quote(text, style_.ensure_ascii));
  }

  absl::Status NewLine() {
    if (!style_.pretty) return absl::OkStatus();
    LLM_RETURN_IF_ERROR(Append("\n"));
    for (size_t i = 0; i < level_; ++i) LLM_RETURN_IF_ERROR(Append(style_.indent));
    return absl::OkStatus();
  }

  absl::Status DumpList(const std::vector<Value>& items) {
    if (items.empty()) return Append("[]");
    LLM_RETURN_IF_ERROR(Append("["));
    ++level_;
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) LLM_RETURN_IF_ERROR(Append(style_.item_separator));
      LLM_RETURN_IF_ERROR(NewLine());
      LLM_RETURN_IF_ERROR(Dump(items[i]));
    }
    --level_;
    LLM_RETURN_IF_ERROR(NewLine());
    return Append("]");
  }

  absl::Status DumpDict(const Dict& dict) {
    if (dict.entries.empty()) return Append("{}");
    std::vector<const Dict::Entry*> entries;
    for (const Dict::Entry& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys) LLM_RETURN_IF_ERROR(Sort(&entries));
    LLM_RETURN_IF_ERROR(Append("{"));
    ++level_;
    for (size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) LLM_RETURN_IF_ERROR(Append(style_.item_separator));
      LLM_RETURN_IF_ERROR(NewLine());
      LLM_RETURN_IF_ERROR(DumpKey(entries[i]->key));
      LLM_RETURN_IF_ERROR(Append(style_.key_separator));
      LLM_RETURN_IF_ERROR(Dump(entries[i]->value));
    }
    --level_;
    LLM_RETURN_IF_ERROR(NewLine());
    return Append("}");
  }

  // Scalars become text, as in Python; so a key `true` and a key "true" may both appear.
  absl::Status DumpKey(const Value& key) {
    if (key.IsText()) return DumpText(key.text());
    if (!key.IsNone() && !key.IsNumber()) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", key.TypeName(), "' cannot be a key of JSON"));
    }
    LLM_RETURN_IF_ERROR(Append("\""));
    LLM_RETURN_IF_ERROR(Dump(key));
    return Append("\"");
  }

  absl::Status Sort(std::vector<const Dict::Entry*>* entries) {
    LLM_RETURN_IF_ERROR(runtime_.budget().Step(entries->size()));
    for (const Dict::Entry* entry : *entries) {
      LLM_RETURN_IF_ERROR(
          runtime_.budget().Scan(entry->key.IsText() ? entry->key.text().size() : 0));
      if (!entry->key.IsText()) {
        return absl::InvalidArgumentError("only string keys can be sorted for JSON");
      }
    }
    std::sort(entries->begin(), entries->end(), [](const auto* a, const auto* b) {
      return a->key.text() < b->key.text();  // the order of bytes is that of code points
    });
    return absl::OkStatus();
  }

  Runtime& runtime_;
  const JsonStyle& style_;
  std::string out_;
  size_t level_ = 0;
};

}  // namespace

absl::StatusOr<std::string> DumpJson(Runtime& runtime, const Value& value, const JsonStyle& style) {
  Dumper dumper(runtime, style);
  LLM_RETURN_IF_ERROR(dumper.Dump(value));
  return dumper.TakeText();
}

}  // namespace llm::jinja
