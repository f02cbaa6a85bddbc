// The global functions, and the search by name. Tables are short: a search costs less than hashing
// would.
#include "src/tokenizer/jinja/builtins.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/runtime.h"
#include "src/tokenizer/jinja/strftime.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<Value>;

// Adds what dict(...) and namespace(...) take: a dict or pairs, then names.
absl::Status FillDict(Runtime& runtime, const Arguments& arguments, Dict* dict) {
  if (arguments.positional.size() > 1) {
    return absl::InvalidArgumentError("takes one positional argument at most");
  }
  if (!arguments.positional.empty()) {
    const Value& source = arguments.positional[0];
    LLM_ASSIGN_OR_RETURN(const auto items, runtime.Items(source));
    for (size_t i = 0; i < items->items.size(); ++i) {
      if (source.IsDict()) {
        const Dict::Entry& entry = source.dict().entries[i];
        LLM_RETURN_IF_ERROR(runtime.AddEntry(dict, entry.key, entry.value));
        continue;
      }
      LLM_ASSIGN_OR_RETURN(const auto pair, runtime.Items(items->items[i]));
      if (pair->items.size() != 2) return absl::InvalidArgumentError("needs pairs");
      LLM_RETURN_IF_ERROR(runtime.AddEntry(dict, pair->items[0], pair->items[1]));
    }
  }
  for (const auto& [name, value] : arguments.named) {
    const LiteralScope literal(runtime, runtime.marks_literal());  // ** may have brought it
    LLM_ASSIGN_OR_RETURN(Value key, runtime.NewText(name));
    LLM_RETURN_IF_ERROR(runtime.AddEntry(dict, std::move(key), value));
  }
  return absl::OkStatus();
}

Result DictFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  Dict dict;
  LLM_RETURN_IF_ERROR(FillDict(runtime, arguments, &dict));
  return runtime.NewDict(std::move(dict));
}

Result NamespaceFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  Dict dict;
  LLM_RETURN_IF_ERROR(FillDict(runtime, arguments, &dict));
  LLM_ASSIGN_OR_RETURN(Value result, runtime.NewNamespace());
  for (Dict::Entry& entry : dict.entries) {
    if (!entry.key.IsText()) return absl::InvalidArgumentError("members need string names");
    // The dict has no doubles, so that members can be added without a search.
    result.members()->members.emplace_back(std::string(entry.key.text()), std::move(entry.value));
  }
  return result;
}

Result RangeFunction(Runtime& runtime, const Value&, const Arguments& arguments) {
  constexpr uint64_t kMaxItems = 100'000;  // as Jinja's sandbox
  const size_t given = arguments.positional.size();
  if (given < 1) return absl::InvalidArgumentError("needs an argument");
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"start", "stop", "step"}));
  LLM_ASSIGN_OR_RETURN(const int64_t first, bound.IntOr(0, 0));
  LLM_ASSIGN_OR_RETURN(const int64_t second, bound.IntOr(1, 0));
  LLM_ASSIGN_OR_RETURN(const int64_t step, bound.IntOr(2, 1));
  const int64_t start = given == 1 ? 0 : first;
  const int64_t stop = given == 1 ? first : second;
  if (step == 0) return absl::InvalidArgumentError("step must not be zero");
  const bool empty = step > 0 ? start >= stop : start <= stop;
  // In unsigned arithmetic neither the distance nor the step can overflow.
  const uint64_t distance = step > 0 ? static_cast<uint64_t>(stop) - static_cast<uint64_t>(start)
                                     : static_cast<uint64_t>(start) - static_cast<uint64_t>(stop);
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = empty ? 0 : (distance - 1) / stride + 1;
  if (count > kMaxItems) {
    return absl::ResourceExhaustedError(
        absl::StrCat("chat template: range of more than ", kMaxItems, " items"));
  }
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(count * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(count);
  for (uint64_t i = 0; i < count; ++i) {
    items.push_back(Value::Int(
        static_cast<int64_t>(static_cast<uint64_t>(start) + i * static_cast<uint64_t>(step))));
  }
  return runtime.NewList(std::move(items), SequenceKind::kRange);
}

Result RaiseException(Runtime& runtime, const Value&, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"message"}, 1));
  LLM_ASSIGN_OR_RETURN(const std::string message, ToText(runtime, bound[0]));
  return absl::InvalidArgumentError(message);
}

Result StrftimeNow(Runtime& runtime, const Value&, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"format"}, 1));
  LLM_ASSIGN_OR_RETURN(const absl::string_view format, bound.TextOr(0, ""));
  // The longest directive gives 24 bytes for two.
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(12 * format.size()));
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(format.size()));
  return runtime.NewText(FormatTime(format, runtime.now_s()));
}

constexpr NamedBuiltin kGlobals[] = {
    {"dict", DictFunction},   {"namespace", NamespaceFunction}, {"raise_exception", RaiseException},
    {"range", RangeFunction}, {"strftime_now", StrftimeNow},
};

}  // namespace

Builtin FindIn(absl::Span<const NamedBuiltin> table, absl::string_view name) {
  for (const NamedBuiltin& entry : table) {
    if (entry.name == name) return entry.builtin;
  }
  return nullptr;
}

Builtin FindGlobal(absl::string_view name) { return FindIn(kGlobals, name); }

Builtin FindFilter(absl::string_view name) {
  for (const auto table : {TextFilters(), NumberFilters(), SequenceFilters(), SelectionFilters()}) {
    if (const Builtin found = FindIn(table, name); found != nullptr) return found;
  }
  return nullptr;
}

}  // namespace llm::jinja
