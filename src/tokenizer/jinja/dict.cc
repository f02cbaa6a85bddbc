// Text keys are found without making a new string: only other keys carry a prefix, a zero byte.
#include "src/tokenizer/jinja/dict.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace llm::jinja {
namespace {

constexpr absl::string_view kOther("\0", 1);

}  // namespace

absl::StatusOr<std::string> EncodeKey(const Value& key) {
  if (key.IsText()) {
    const absl::string_view text = key.text();
    const bool clash = !text.empty() && text[0] == '\0';
    return clash ? absl::StrCat(kOther, "t", text) : std::string(text);
  }
  if (key.IsIntegral()) return absl::StrCat(kOther, "i", key.integer());
  if (key.IsFloat()) {
    const double number = key.number();
    if (std::trunc(number) == number && std::fabs(number) < 9e18) {
      return absl::StrCat(kOther, "i", static_cast<int64_t>(number));
    }
    return absl::StrCat(kOther, "f", absl::string_view(reinterpret_cast<const char*>(&number), 8));
  }
  if (key.IsNone()) return absl::StrCat(kOther, "n");
  if (key.IsUndefined()) return absl::StrCat(kOther, "u");
  if (key.IsSequence() && key.sequence()->kind == SequenceKind::kTuple) {
    return absl::InvalidArgumentError("tuples are not supported as keys");
  }
  return absl::InvalidArgumentError(absl::StrCat("unhashable type: ", key.TypeName()));
}

absl::Status SetEntry(Dict* dict, Value key, Value value) {
  absl::StatusOr<std::string> encoded = EncodeKey(key);
  if (!encoded.ok()) return encoded.status();
  dict->depth = std::max(dict->depth, value.Depth() + 1);
  const auto [found, added] = dict->index.try_emplace(*std::move(encoded), dict->entries.size());
  if (added) {
    dict->entries.push_back({std::move(key), std::move(value)});
  } else {
    dict->entries[found->second].value = std::move(value);
  }
  return absl::OkStatus();
}

const Value* FindEntry(const Dict& dict, absl::string_view key) {
  if (!key.empty() && key[0] == '\0') {
    const auto found = dict.index.find(absl::StrCat(kOther, "t", key));
    return found == dict.index.end() ? nullptr : &dict.entries[found->second].value;
  }
  const auto found = dict.index.find(key);
  return found == dict.index.end() ? nullptr : &dict.entries[found->second].value;
}

const Value* FindEntry(const Dict& dict, const Value& key) {
  if (key.IsText()) return FindEntry(dict, key.text());
  const absl::StatusOr<std::string> encoded = EncodeKey(key);
  if (!encoded.ok()) return nullptr;
  const auto found = dict.index.find(*encoded);
  return found == dict.index.end() ? nullptr : &dict.entries[found->second].value;
}

}  // namespace llm::jinja
