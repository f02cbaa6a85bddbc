// Methods of dicts, lists and tuples; only those that change nothing.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/operators.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result Get(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"key", "default"}, 1));
  LLM_RETURN_IF_ERROR(EncodeKey(bound[0]).status());
  const Value* value = FindEntry(self.dict(), bound[0]);
  return value != nullptr ? *value : bound.Or(1, Value::None());
}

Result Keys(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  std::vector<Value> keys;
  for (const Dict::Entry& entry : self.dict().entries) keys.push_back(entry.key);
  return runtime.NewList(std::move(keys), SequenceKind::kKeys);
}

Result Values(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  std::vector<Value> values;
  for (const Dict::Entry& entry : self.dict().entries) values.push_back(entry.value);
  return runtime.NewList(std::move(values), SequenceKind::kValues);
}

Result Items(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  std::vector<Value> items;
  for (const Dict::Entry& entry : self.dict().entries) {
    LLM_ASSIGN_OR_RETURN(Value item,
                         runtime.NewList({entry.key, entry.value}, SequenceKind::kTuple));
    items.push_back(std::move(item));
  }
  return runtime.NewList(std::move(items), SequenceKind::kItems);
}

// Values do not change, so that a copy may be the same object.
Result Copy(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  return self;
}

Result Index(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"value"}, 1));
  const auto& items = self.sequence()->items;
  for (size_t i = 0; i < items.size(); ++i) {
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, items[i], bound[0]));
    if (equal) return Value::Int(static_cast<int64_t>(i));
  }
  return absl::InvalidArgumentError("value is not in the list");
}

Result Count(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"value"}, 1));
  int64_t count = 0;
  for (const Value& item : self.sequence()->items) {
    LLM_ASSIGN_OR_RETURN(const bool equal, Equal(runtime, item, bound[0]));
    count += equal ? 1 : 0;
  }
  return Value::Int(count);
}

constexpr NamedBuiltin kDictMethods[] = {
    {"copy", Copy}, {"get", Get}, {"items", Items}, {"keys", Keys}, {"values", Values},
};

constexpr NamedBuiltin kSequenceMethods[] = {
    {"copy", Copy},
    {"count", Count},
    {"index", Index},
};

}  // namespace

Builtin FindDictMethod(absl::string_view name) { return FindIn(kDictMethods, name); }
Builtin FindSequenceMethod(absl::string_view name) { return FindIn(kSequenceMethods, name); }

}  // namespace llm::jinja
