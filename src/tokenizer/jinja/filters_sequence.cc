// Filters that take sequences apart or put them together.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

Result LengthFilter(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  if (self.IsUndefined()) return Value::Int(0);
  if (self.IsText()) return Value::Int(static_cast<int64_t>(CodePointCount(self.text())));
  if (self.IsDict()) return Value::Int(static_cast<int64_t>(self.dict().entries.size()));
  if (self.IsLoop() || !self.IsSequence() || self.sequence()->kind == SequenceKind::kGenerator) {
    return absl::InvalidArgumentError(absl::StrCat("'", self.TypeName(), "' has no length"));
  }
  return Value::Int(static_cast<int64_t>(self.sequence()->items.size()));
}

Result FirstFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  if (items->items.empty()) return Value::Undefined("no first item, sequence was empty");
  return items->items.front();
}

Result LastFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  if (items->items.empty()) return Value::Undefined("no last item, sequence was empty");
  return items->items.back();
}

Result ListFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(items->items.size() * sizeof(Value)));
  return runtime.NewList(items->items);
}

Result ReverseFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  if (self.IsText()) {
    return Slice(runtime, self, Value(), Value(), Value::Int(-1));
  }
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(items->items.size() * sizeof(Value)));
  return runtime.NewList({items->items.rbegin(), items->items.rend()}, SequenceKind::kGenerator);
}

Result DefaultFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"default_value", "boolean"}));
  const bool replace = self.IsUndefined() || (bound.TruthOr(1, false) && !self.Truth());
  if (!replace) return self;
  return bound.Has(0) ? Result(bound[0]) : runtime.NewText(absl::string_view());
}

Result ItemsFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_RETURN_IF_ERROR(Bind(arguments, {}).status());
  std::vector<Value> pairs;
  if (!self.IsUndefined() && !self.IsDict()) {
    return absl::InvalidArgumentError("can only get item pairs from a mapping");
  }
  if (self.IsDict()) {
    for (const Dict::Entry& entry : self.dict().entries) {
      LLM_ASSIGN_OR_RETURN(Value pair,
                           runtime.NewList({entry.key, entry.value}, SequenceKind::kTuple));
      pairs.push_back(std::move(pair));
    }
  }
  return runtime.NewList(std::move(pairs), SequenceKind::kGenerator);
}

Result AttrFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"name"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view name, bound.TextOr(0, ""));
  // An attribute only: the item of a dict is not one.
  if (self.IsDict() && FindDictMethod(name) == nullptr) {
    return Value::Undefined(
        absl::StrCat("'dict object' has no attribute '", name.substr(0, 80), "'"));
  }
  return GetAttribute(runtime, self, name);
}

Result BatchFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"linecount", "fill_with"}, 1));
  LLM_ASSIGN_OR_RETURN(const int64_t count, bound.IntOr(0, 1));
  if (count < 1) return absl::InvalidArgumentError("linecount must be positive");
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  const auto size = static_cast<uint64_t>(count);
  std::vector<Value> batches;
  for (size_t begin = 0; begin < items->items.size(); begin += size) {
    const size_t end = size < items->items.size() - begin ? begin + size : items->items.size();
    std::vector<Value> batch(items->items.begin() + static_cast<std::ptrdiff_t>(begin),
                             items->items.begin() + static_cast<std::ptrdiff_t>(end));
    if (bound.Has(1) && !bound[1].IsNone() && batch.size() < size) {
      LLM_RETURN_IF_ERROR(
          runtime.budget().ChargeBytes(size > (1ull << 40) ? size : size * sizeof(Value)));
      batch.resize(size, bound[1]);
    }
    LLM_ASSIGN_OR_RETURN(Value list, runtime.NewList(std::move(batch)));
    batches.push_back(std::move(list));
    if (end == items->items.size()) break;
  }
  return runtime.NewList(std::move(batches), SequenceKind::kGenerator);
}

Result SliceFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"slices", "fill_with"}, 1));
  LLM_ASSIGN_OR_RETURN(const int64_t slices, bound.IntOr(0, 1));
  if (slices < 1) return absl::InvalidArgumentError("slices must be positive");
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  const auto count = static_cast<uint64_t>(slices);
  LLM_RETURN_IF_ERROR(runtime.budget().Step(count));
  const size_t size = items->items.size() / count;
  const size_t longer = items->items.size() % count;
  std::vector<Value> parts;
  auto begin = items->items.begin();
  for (uint64_t i = 0; i < count; ++i) {
    const auto end = begin + static_cast<std::ptrdiff_t>(size + (i < longer ? 1 : 0));
    std::vector<Value> part(begin, end);
    begin = end;
    if (bound.Has(1) && !bound[1].IsNone() && i >= longer) part.push_back(bound[1]);
    LLM_ASSIGN_OR_RETURN(Value list, runtime.NewList(std::move(part)));
    parts.push_back(std::move(list));
  }
  return runtime.NewList(std::move(parts), SequenceKind::kGenerator);
}

constexpr NamedBuiltin kFilters[] = {
    {"attr", AttrFilter},   {"batch", BatchFilter},     {"count", LengthFilter},
    {"d", DefaultFilter},   {"default", DefaultFilter}, {"first", FirstFilter},
    {"items", ItemsFilter}, {"last", LastFilter},       {"length", LengthFilter},
    {"list", ListFilter},   {"reverse", ReverseFilter}, {"slice", SliceFilter},
};

}  // namespace

absl::Span<const NamedBuiltin> SequenceFilters() { return kFilters; }

}  // namespace llm::jinja
