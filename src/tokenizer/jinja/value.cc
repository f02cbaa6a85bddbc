// The questions that need no budget: each looks at one level of a value only.
#include "src/tokenizer/jinja/value.h"

#include <algorithm>

#include "src/tokenizer/jinja/loop.h"

namespace llm::jinja {
namespace {

const char* SequenceTypeName(SequenceKind kind) {
  switch (kind) {
    case SequenceKind::kList:
      return "list object";
    case SequenceKind::kTuple:
      return "tuple object";
    case SequenceKind::kRange:
      return "range object";
    case SequenceKind::kGenerator:
      return "generator object";
    case SequenceKind::kKeys:
      return "dict_keys object";
    case SequenceKind::kValues:
      return "dict_values object";
    case SequenceKind::kItems:
      return "dict_items object";
  }
  return "object";
}

}  // namespace

bool Value::Truth() const {
  if (IsUndefined() || IsNone()) return false;
  if (IsIntegral()) return integer() != 0;
  if (IsFloat()) return number() != 0.0;
  if (IsText()) return !text().empty();
  if (IsSequence()) {
    return sequence()->kind == SequenceKind::kGenerator || !sequence()->items.empty();
  }
  return !IsDict() || !dict().entries.empty();
}

std::string Value::TypeName() const {
  if (IsUndefined()) return "undefined";
  if (IsNone()) return "None";
  if (IsBool()) return "bool object";
  if (IsInt()) return "int object";
  if (IsFloat()) return "float object";
  if (IsText()) return "str object";
  if (IsDict()) return "dict object";
  if (IsNamespace()) return "namespace object";
  if (IsLoop()) return "loop object";
  return IsSequence() ? SequenceTypeName(sequence()->kind) : "function object";
}

bool Value::SameObject(const Value& other) const {
  if (rep_.index() != other.rep_.index()) return false;
  if (IsNone()) return true;
  if (IsBool()) return boolean() == other.boolean();
  if (IsInt()) return integer() == other.integer();
  if (IsText()) return &text_object() == &other.text_object();
  if (IsSequence()) return sequence() == other.sequence();
  if (IsDict()) return &dict() == &other.dict();
  if (IsNamespace()) return members() == other.members();
  if (IsCallable()) return &callable() == &other.callable();
  return IsLoop() && loop() == other.loop();
}

uint32_t Value::Depth() const {
  if (IsSequence()) return sequence()->depth;
  if (IsDict()) return dict().depth;
  if (IsCallable()) return 1 + callable().self.Depth();
  return IsLoop() ? 1 + loop()->items->depth : 0;
}

std::string Value::UndefinedReason() const {
  const auto& what = std::get<UndefinedType>(rep_).what;
  return what == nullptr ? "value is undefined" : *what;
}

const Value* Namespace::Find(absl::string_view name) const {
  for (const auto& [member, value] : members) {
    if (member == name) return &value;
  }
  return nullptr;
}

void Namespace::Set(absl::string_view name, Value value) {
  for (auto& [member, old] : members) {
    if (member == name) {
      old = std::move(value);
      return;
    }
  }
  members.emplace_back(std::string(name), std::move(value));
}

}  // namespace llm::jinja
