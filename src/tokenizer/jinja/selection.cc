// A merge sort of our own, since comparing can fail and std::sort has no way to stop.
#include "src/tokenizer/jinja/selection.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

// Merges [begin, middle) and [middle, end) of `from` into `to`.
absl::Status Merge(Runtime& runtime, bool reverse, size_t begin, size_t middle, size_t end,
                   std::vector<Keyed>* from, std::vector<Keyed>* to) {
  size_t left = begin;
  size_t right = middle;
  for (size_t out = begin; out < end; ++out) {
    bool take_right = left == middle;
    if (left < middle && right < end) {
      LLM_ASSIGN_OR_RETURN(const std::partial_ordering order,
                           Order(runtime, (*from)[right].key, (*from)[left].key));
      take_right = reverse ? order > 0 : order < 0;
    }
    (*to)[out] = std::move((*from)[take_right ? right++ : left++]);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Value> GetPath(Runtime& runtime, const Value& value, const Value* path) {
  if (path == nullptr || path->IsNone()) return value;
  if (!path->IsText()) return GetItem(runtime, value, *path);
  Value current = value;
  absl::string_view rest = path->text();
  while (true) {
    const size_t dot = rest.find('.');
    const absl::string_view part = rest.substr(0, dot);
    int64_t index = 0;
    const bool is_index = part.find_first_not_of("0123456789") == absl::string_view::npos &&
                          absl::SimpleAtoi(part, &index);
    Value key = Value::Int(index);
    if (!is_index) {
      LLM_ASSIGN_OR_RETURN(key, runtime.NewText(part));
    }
    LLM_ASSIGN_OR_RETURN(current, GetItem(runtime, current, key));
    if (dot == absl::string_view::npos) return current;
    rest.remove_prefix(dot + 1);
  }
}

absl::StatusOr<Value> SortKey(Runtime& runtime, const Value& value, bool case_sensitive) {
  if (case_sensitive || !value.IsText()) return value;
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(value.text().size()));
  return runtime.NewText(Lower(value.text()));
}

absl::Status SortByKey(Runtime& runtime, bool reverse, std::vector<Keyed>* items) {
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(items->size() * sizeof(Keyed)));
  std::vector<Keyed> other(items->size());
  const size_t size = items->size();
  for (size_t width = 1; width < size; width *= 2) {
    for (size_t begin = 0; begin < size; begin += 2 * width) {
      LLM_RETURN_IF_ERROR(Merge(runtime, reverse, begin, std::min(begin + width, size),
                                std::min(begin + 2 * width, size), items, &other));
    }
    items->swap(other);
  }
  return absl::OkStatus();
}

std::vector<Value> ValuesOf(std::vector<Keyed> items) {
  std::vector<Value> values;
  values.reserve(items.size());
  for (Keyed& item : items) values.push_back(std::move(item.value));
  return values;
}

}  // namespace llm::jinja
