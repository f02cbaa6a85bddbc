// Filters that look into the items: map, select, sort, join and their kin.
#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/selection.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// The arguments behind the first `count` positional ones.
Arguments Rest(const Arguments& arguments, size_t count) {
  Arguments rest;
  const size_t skipped = std::min(count, arguments.positional.size());
  rest.positional.assign(arguments.positional.begin() + static_cast<std::ptrdiff_t>(skipped),
                         arguments.positional.end());
  rest.named = arguments.named;
  return rest;
}

// What map and the selecting filters visit: nothing for None and other false values, as in Jinja.
absl::StatusOr<std::shared_ptr<const Sequence>> ItemsIfTrue(Runtime& runtime, const Value& self) {
  if (!self.Truth()) return std::make_shared<const Sequence>();
  return runtime.Items(self);
}

Result MapAttribute(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"attribute", "default"}, 1));
  LLM_ASSIGN_OR_RETURN(const auto items, ItemsIfTrue(runtime, self));
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    LLM_ASSIGN_OR_RETURN(Value value, GetPath(runtime, item, &bound[0]));
    if (value.IsUndefined() && bound.Has(1)) value = bound[1];
    mapped.push_back(std::move(value));
  }
  return runtime.NewList(std::move(mapped), SequenceKind::kGenerator);
}

Result MapFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return MapAttribute(runtime, self, arguments);
  const Value& name = arguments.positional[0];
  if (!name.IsText()) return absl::InvalidArgumentError("the name of a filter must be a string");
  const Arguments rest = Rest(arguments, 1);
  LLM_ASSIGN_OR_RETURN(const auto items, ItemsIfTrue(runtime, self));
  std::vector<Value> mapped;
  for (const Value& item : items->items) {
    LLM_ASSIGN_OR_RETURN(Value value, runtime.CallFilter(name.text(), item, rest));
    mapped.push_back(std::move(value));
  }
  return runtime.NewList(std::move(mapped), SequenceKind::kGenerator);
}

// select, reject, selectattr, rejectattr: items whose value (at a path) passes a test, or is true
// without one.
Result Select(Runtime& runtime, const Value& self, const Arguments& arguments, bool by_attribute,
              bool keep) {
  const size_t first = by_attribute ? 1 : 0;
  const auto& given = arguments.positional;
  if (given.size() < first) return absl::InvalidArgumentError("the attribute is missing");
  const bool has_test = given.size() > first;
  if (has_test && !given[first].IsText()) {
    return absl::InvalidArgumentError("the name of a test must be a string");
  }
  const Arguments rest = Rest(arguments, first + 1);
  LLM_ASSIGN_OR_RETURN(const auto items, ItemsIfTrue(runtime, self));
  std::vector<Value> kept;
  for (const Value& item : items->items) {
    LLM_ASSIGN_OR_RETURN(const Value value,
                         GetPath(runtime, item, by_attribute ? &given[0] : nullptr));
    bool passes = value.Truth();
    if (has_test) {
      LLM_ASSIGN_OR_RETURN(passes, runtime.CallTest(given[first].text(), value, rest));
    }
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    if (passes == keep) kept.push_back(item);
  }
  return runtime.NewList(std::move(kept), SequenceKind::kGenerator);
}

Result SelectFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Select(runtime, self, arguments, false, true);
}
Result RejectFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Select(runtime, self, arguments, false, false);
}
Result SelectAttrFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Select(runtime, self, arguments, true, true);
}
Result RejectAttrFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Select(runtime, self, arguments, true, false);
}

Result JoinFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"d", "attribute"}));
  std::string separator;
  if (bound.Has(0)) {
    LLM_RETURN_IF_ERROR(AppendText(runtime, bound[0], &separator));
  }
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  std::string text;
  TextSpans literal;
  for (size_t i = 0; i < items->items.size(); ++i) {
    LLM_ASSIGN_OR_RETURN(const Value value,
                         GetPath(runtime, items->items[i], bound.Has(1) ? &bound[1] : nullptr));
    LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(separator.size()));
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    size_t begin = text.size();
    if (i > 0 && bound.Has(0)) {
      text += separator;
      LLM_RETURN_IF_ERROR(runtime.Mark(bound[0], begin, text.size(), &literal));
      begin = text.size();
    }
    LLM_RETURN_IF_ERROR(AppendText(runtime, value, &text));
    LLM_RETURN_IF_ERROR(runtime.Mark(value, begin, text.size(), &literal));
  }
  return runtime.NewText(std::move(text), std::move(literal));
}

absl::StatusOr<std::vector<Keyed>> KeyedItems(Runtime& runtime, const Value& self,
                                              const Value* path, bool case_sensitive) {
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(items->items.size() * sizeof(Keyed)));
  std::vector<Keyed> keyed;
  keyed.reserve(items->items.size());
  for (const Value& item : items->items) {
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    LLM_ASSIGN_OR_RETURN(const Value value, GetPath(runtime, item, path));
    LLM_ASSIGN_OR_RETURN(Value key, SortKey(runtime, value, case_sensitive));
    keyed.push_back({std::move(key), item});
  }
  return keyed;
}

// Sorted by the last attribute first: each sort is stable, so that the first one decides in the
// end.
Result SortFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound,
                       Bind(arguments, {"reverse", "case_sensitive", "attribute"}));
  const bool has_path = bound.Has(2) && bound[2].IsText();
  absl::string_view paths = has_path ? bound[2].text() : absl::string_view();
  LLM_ASSIGN_OR_RETURN(Value current, runtime.NewList({}));
  current = self;
  while (true) {
    const size_t comma = paths.rfind(',');
    const size_t begin = comma == absl::string_view::npos ? 0 : comma + 1;
    LLM_ASSIGN_OR_RETURN(const Value part, runtime.NewText(paths.substr(begin)));
    const Value* path = has_path ? &part : bound.Has(2) ? &bound[2] : nullptr;
    LLM_ASSIGN_OR_RETURN(std::vector<Keyed> items,
                         KeyedItems(runtime, current, path, bound.TruthOr(1, false)));
    LLM_RETURN_IF_ERROR(SortByKey(runtime, bound.TruthOr(0, false), &items));
    LLM_ASSIGN_OR_RETURN(current, runtime.NewList(ValuesOf(std::move(items))));
    if (comma == absl::string_view::npos) return current;
    paths = paths.substr(0, comma);
  }
}

Result DictSortFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"case_sensitive", "by", "reverse"}));
  if (self.IsUndefined()) return absl::InvalidArgumentError(self.UndefinedReason());
  if (!self.IsDict()) return absl::InvalidArgumentError("needs a dict");
  LLM_ASSIGN_OR_RETURN(const absl::string_view by, bound.TextOr(1, "key"));
  if (by != "key" && by != "value") return absl::InvalidArgumentError("by must be key or value");
  std::vector<Keyed> pairs;
  for (const Dict::Entry& entry : self.dict().entries) {
    LLM_ASSIGN_OR_RETURN(Value key, SortKey(runtime, by == "key" ? entry.key : entry.value,
                                            bound.TruthOr(0, false)));
    LLM_ASSIGN_OR_RETURN(Value pair,
                         runtime.NewList({entry.key, entry.value}, SequenceKind::kTuple));
    pairs.push_back({std::move(key), std::move(pair)});
  }
  LLM_RETURN_IF_ERROR(SortByKey(runtime, bound.TruthOr(2, false), &pairs));
  return runtime.NewList(ValuesOf(std::move(pairs)));
}

Result UniqueFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"case_sensitive", "attribute"}));
  LLM_ASSIGN_OR_RETURN(
      std::vector<Keyed> items,
      KeyedItems(runtime, self, bound.Has(1) ? &bound[1] : nullptr, bound.TruthOr(0, false)));
  std::set<std::string> seen;
  std::vector<Value> kept;
  for (Keyed& item : items) {
    LLM_ASSIGN_OR_RETURN(std::string key, EncodeKey(item.key));
    LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(key.size() + 64));
    if (seen.insert(std::move(key)).second) kept.push_back(std::move(item.value));
  }
  return runtime.NewList(std::move(kept), SequenceKind::kGenerator);
}

Result SumFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"attribute", "start"}));
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  Value sum = bound.Or(1, Value::Int(0));
  if (sum.IsText()) return absl::InvalidArgumentError("cannot sum strings, use join");
  for (const Value& item : items->items) {
    LLM_RETURN_IF_ERROR(runtime.budget().Step());
    LLM_ASSIGN_OR_RETURN(const Value value,
                         GetPath(runtime, item, bound.Has(0) ? &bound[0] : nullptr));
    LLM_ASSIGN_OR_RETURN(sum, Arithmetic(runtime, BinaryOp::kAdd, sum, value));
  }
  return sum;
}

Result Extreme(Runtime& runtime, const Value& self, const Arguments& arguments, bool largest) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"case_sensitive", "attribute"}));
  LLM_ASSIGN_OR_RETURN(
      std::vector<Keyed> items,
      KeyedItems(runtime, self, bound.Has(1) ? &bound[1] : nullptr, bound.TruthOr(0, false)));
  if (items.empty()) return Value::Undefined("no aggregated item, sequence was empty");
  size_t best = 0;
  for (size_t i = 1; i < items.size(); ++i) {
    LLM_ASSIGN_OR_RETURN(const std::partial_ordering order,
                         Order(runtime, items[i].key, items[best].key));
    if (largest ? order > 0 : order < 0) best = i;
  }
  return items[best].value;
}

Result MinFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Extreme(runtime, self, arguments, false);
}
Result MaxFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  return Extreme(runtime, self, arguments, true);
}

Result GroupByFilter(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound,
                       Bind(arguments, {"attribute", "default", "case_sensitive"}, 1));
  LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(self));
  std::vector<Keyed> keyed;
  for (const Value& item : items->items) {
    LLM_ASSIGN_OR_RETURN(Value value, GetPath(runtime, item, &bound[0]));
    if (value.IsUndefined() && bound.Has(1)) value = bound[1];
    LLM_ASSIGN_OR_RETURN(Value key, SortKey(runtime, value, bound.TruthOr(2, false)));
    LLM_ASSIGN_OR_RETURN(Value pair, runtime.NewList({value, item}));
    keyed.push_back({std::move(key), std::move(pair)});
  }
  LLM_RETURN_IF_ERROR(SortByKey(runtime, false, &keyed));
  std::vector<Value> groups;
  for (size_t begin = 0; begin < keyed.size();) {
    const Value grouper = keyed[begin].value.sequence()->items[0];
    std::vector<Value> members;
    size_t end = begin;
    for (; end < keyed.size(); ++end) {
      LLM_ASSIGN_OR_RETURN(const bool same, Equal(runtime, keyed[begin].key, keyed[end].key));
      if (!same) break;
      members.push_back(keyed[end].value.sequence()->items[1]);
    }
    LLM_ASSIGN_OR_RETURN(Value list, runtime.NewList(std::move(members)));
    LLM_ASSIGN_OR_RETURN(Value group,
                         runtime.NewList({grouper, std::move(list)}, SequenceKind::kTuple));
    groups.push_back(std::move(group));
    begin = end;
  }
  return runtime.NewList(std::move(groups));
}

constexpr NamedBuiltin kFilters[] = {
    {"dictsort", DictSortFilter}, {"groupby", GroupByFilter},
    {"join", JoinFilter},         {"map", MapFilter},
    {"max", MaxFilter},           {"min", MinFilter},
    {"reject", RejectFilter},     {"rejectattr", RejectAttrFilter},
    {"select", SelectFilter},     {"selectattr", SelectAttrFilter},
    {"sort", SortFilter},         {"sum", SumFilter},
    {"unique", UniqueFilter},
};

}  // namespace

absl::Span<const NamedBuiltin> SelectionFilters() { return kFilters; }

}  // namespace llm::jinja
