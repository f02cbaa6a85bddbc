// Charges before it allocates; sizes per object are those of this build, rounded up.
#include "src/tokenizer/jinja/runtime.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

constexpr uint64_t kTextBytes = 80;       // Text, its reference counts, and the allocator's header
constexpr uint64_t kContainerBytes = 96;  // an empty Sequence or Dict
constexpr uint64_t kItemBytes = 32;       // a Value, and the slack of a growing vector

// A vector of them and its slack.
uint64_t SpanBytes(size_t count) {
  return count == 0 ? 0 : 48 + 2 * sizeof(TextSpan) * uint64_t{count};
}

}  // namespace

// Namespaces may hold each other's containers but never own each other, so the order does not
// matter.
Runtime::~Runtime() = default;

absl::Status Runtime::CheckDepth(uint32_t depth) const {
  if (depth <= budget_.max_value_depth()) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("chat template: values nest deeper than ", budget_.max_value_depth()));
}

absl::StatusOr<Value> Runtime::NewText(std::string text, bool markup) {
  TextSpans literal;
  if (makes_literal_) AddSpan(0, text.size(), &literal);
  return NewText(std::move(text), std::move(literal), markup);
}

absl::StatusOr<Value> Runtime::NewText(std::string text, TextSpans literal, bool markup) {
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(text.size() + kTextBytes + SpanBytes(literal.size())));
  std::unique_ptr<const TextSpans> spans;
  if (!literal.empty()) spans = std::make_unique<const TextSpans>(std::move(literal));
  return Value::Of(std::make_shared<const Text>(Text{std::move(text), markup, std::move(spans)}));
}

absl::StatusOr<Value> Runtime::NewPart(const Value& whole, absl::string_view part, bool markup) {
  const absl::string_view text = whole.IsText() ? whole.text() : absl::string_view();
  const bool inside = !std::less<>()(part.data(), text.data()) &&
                      !std::less<>()(text.data() + text.size(), part.data() + part.size());
  if (!inside) return NewText(std::string(part), markup);
  const size_t begin = static_cast<size_t>(part.data() - text.data());
  TextSpans literal;
  AddPart(whole.text_object(), begin, begin + part.size(), 0, &literal);
  return NewText(std::string(part), std::move(literal), markup);
}

absl::Status Runtime::Mark(const Value& value, size_t begin, size_t end, TextSpans* literal) {
  if (!marks_literal_ || !MayBeLiteral(value)) return absl::OkStatus();
  const size_t before = literal->size();
  if (value.IsText() && value.text().size() == end - begin) {
    LLM_RETURN_IF_ERROR(budget_.Step(value.text_object().literal->size() / 16));
    AddPart(value.text_object(), 0, end - begin, begin, literal);
  } else {
    AddSpan(begin, end, literal);
  }
  return budget_.ChargeBytes(SpanBytes(literal->size() - before));
}

absl::StatusOr<Value> Runtime::NewList(std::vector<Value> items, SequenceKind kind) {
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kContainerBytes + kItemBytes * items.size()));
  LLM_RETURN_IF_ERROR(budget_.Step(items.size() / 16));
  auto sequence = std::make_shared<Sequence>();
  sequence->kind = kind;
  for (const Value& item : items) sequence->depth = std::max(sequence->depth, item.Depth() + 1);
  LLM_RETURN_IF_ERROR(CheckDepth(sequence->depth));
  sequence->items = std::move(items);
  return Value::Of(std::move(sequence));
}

absl::StatusOr<Value> Runtime::NewDict(Dict dict) {
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kContainerBytes));
  LLM_RETURN_IF_ERROR(CheckDepth(dict.depth));
  return Value::Of(std::make_shared<const Dict>(std::move(dict)));
}

absl::StatusOr<Value> Runtime::NewNamespace() {
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kContainerBytes));
  namespaces_.push_back(std::make_unique<Namespace>());
  return Value::Of(namespaces_.back().get());
}

absl::StatusOr<Value> Runtime::NewFunction(absl::string_view name, Builtin builtin,
                                           const Value& self) {
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(sizeof(Callable) + name.size()));
  LLM_RETURN_IF_ERROR(CheckDepth(self.Depth() + 1));
  auto callable = std::make_shared<Callable>();
  callable->name = std::string(name);
  callable->builtin = builtin;
  callable->self = self;
  return Value::Of(std::shared_ptr<const Callable>(std::move(callable)));
}

absl::Status Runtime::AddEntry(Dict* dict, Value key, Value value) {
  const uint64_t key_bytes = key.IsText() ? key.text().size() : 16;
  LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kDictEntryBytes + key_bytes));
  LLM_RETURN_IF_ERROR(budget_.Scan(key_bytes));
  return SetEntry(dict, std::move(key), std::move(value));
}

absl::StatusOr<std::shared_ptr<const Sequence>> Runtime::Items(const Value& value) {
  if (value.IsSequence()) {
    const auto& sequence = value.sequence();
    if (sequence->kind != SequenceKind::kGenerator) return sequence;
    auto rest = std::make_shared<Sequence>();
    rest->depth = sequence->depth;
    rest->items.swap(sequence->items);
    return rest;
  }
  auto items = std::make_shared<Sequence>();
  if (value.IsText()) {
    const absl::string_view text = value.text();
    const size_t count = CodePointCount(text);
    LLM_RETURN_IF_ERROR(budget_.Step(count));
    LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kItemBytes * count));
    items->items.reserve(count);
    for (size_t i = 0; i < text.size();) {
      const size_t bytes = CodePointBytes(text[i]);
      LLM_ASSIGN_OR_RETURN(Value item, NewPart(value, text.substr(i, bytes)));
      items->items.push_back(std::move(item));
      i += bytes;
    }
  } else if (value.IsDict()) {
    LLM_RETURN_IF_ERROR(budget_.ChargeBytes(kItemBytes * value.dict().entries.size()));
    for (const Dict::Entry& entry : value.dict().entries) items->items.push_back(entry.key);
  } else if (value.IsLoop() || !value.IsUndefined()) {
    return absl::InvalidArgumentError(absl::StrCat("'", value.TypeName(), "' is not iterable"));
  }
  return items;  // undefined: nothing to visit
}

absl::StatusOr<Value> Runtime::CallFilter(absl::string_view name, const Value& value,
                                          const Arguments& arguments) {
  const Builtin filter = FindFilter(name);
  if (filter == nullptr) return absl::InvalidArgumentError(absl::StrCat("no filter '", name, "'"));
  DepthGuard depth(budget_);  // map and others call filters by name
  LLM_RETURN_IF_ERROR(depth.status());
  LLM_RETURN_IF_ERROR(budget_.Scan(value.IsText() ? value.text().size() : 0));
  const LiteralScope literal(*this, marks_literal_ && MayBeLiteral(value, arguments));
  return filter(*this, value, arguments);
}

absl::StatusOr<bool> Runtime::CallTest(absl::string_view name, const Value& value,
                                       const Arguments& arguments) {
  const BuiltinTest test = FindTest(name);
  if (test == nullptr) return absl::InvalidArgumentError(absl::StrCat("no test '", name, "'"));
  LLM_RETURN_IF_ERROR(budget_.Step());
  return test(*this, value, arguments);
}

}  // namespace llm::jinja
