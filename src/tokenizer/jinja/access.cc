// Items, attributes and slices. Names that Jinja's immutable sandbox hides (list.append, dict.pop)
// are undefined here.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/loop.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

Value Missing(const Value& object, absl::string_view name) {
  return Value::Undefined(
      absl::StrCat("'", object.TypeName(), "' has no attribute '", name.substr(0, 80), "'"));
}

absl::StatusOr<Value> Method(Runtime& runtime, const Value& object, absl::string_view name) {
  Builtin builtin = nullptr;
  if (object.IsText()) builtin = FindTextMethod(name);
  if (object.IsDict()) builtin = FindDictMethod(name);
  if (object.IsSequence() && object.sequence()->IsListOrTuple()) builtin = FindSequenceMethod(name);
  if (builtin != nullptr) return runtime.NewFunction(name, builtin, object);
  if (object.IsLoop()) return LoopAttribute(object, name);
  if (object.IsNamespace()) {
    LLM_RETURN_IF_ERROR(runtime.budget().Step(object.members()->members.size() / 16));
    const Value* member = object.members()->Find(name);
    if (member != nullptr) return *member;
  }
  if (object.IsCallable() && object.callable().macro != nullptr && name == "name") {
    return runtime.NewText(object.callable().name);
  }
  return Missing(object, name);
}

absl::Status UndefinedError(const Value& object) {
  return absl::InvalidArgumentError(object.UndefinedReason());
}

// Python's index from the end. False when it is out of range.
bool ResolveIndex(int64_t index, size_t size, size_t* resolved) {
  const auto length = static_cast<int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return false;
  *resolved = static_cast<size_t>(index);
  return true;
}

absl::StatusOr<Value> TextItem(Runtime& runtime, const Value& object, int64_t index) {
  const absl::string_view text = object.text();
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(text.size()));
  size_t resolved = 0;
  if (!ResolveIndex(index, CodePointCount(text), &resolved)) {
    return Missing(object, absl::StrCat(index));
  }
  const size_t begin = ByteOffset(text, resolved);
  return runtime.NewPart(object, text.substr(begin, CodePointBytes(text[begin])));
}

struct Range {
  int64_t start = 0;
  int64_t stop = 0;
  int64_t step = 1;
  int64_t count() const {
    if (step > 0) return start < stop ? (stop - start - 1) / step + 1 : 0;
    return start > stop ? (start - stop - 1) / -step + 1 : 0;
  }
};

absl::StatusOr<int64_t> Boundary(const Value& value, int64_t fallback, int64_t length,
                                 int64_t lowest, int64_t highest) {
  if (value.IsUndefined() || value.IsNone()) return fallback;
  if (!value.IsIntegral()) {
    return absl::InvalidArgumentError(
        absl::StrCat("slice indices must be integers, not '", value.TypeName(), "'"));
  }
  const int64_t index = value.integer();
  return std::clamp(index < 0 ? index + length : index, lowest, highest);
}

// Python's slice.indices: clamps start and stop to what the step can visit.
absl::StatusOr<Range> ResolveSlice(const Value& start, const Value& stop, const Value& step,
                                   size_t size) {
  const auto length = static_cast<int64_t>(size);
  Range range;
  LLM_ASSIGN_OR_RETURN(range.step, Boundary(step, 1, 0, INT64_MIN + 1, INT64_MAX));
  if (range.step == 0) return absl::InvalidArgumentError("slice step cannot be zero");
  const bool forward = range.step > 0;
  const int64_t lowest = forward ? 0 : -1;
  const int64_t highest = forward ? length : length - 1;
  LLM_ASSIGN_OR_RETURN(range.start,
                       Boundary(start, forward ? lowest : highest, length, lowest, highest));
  LLM_ASSIGN_OR_RETURN(range.stop,
                       Boundary(stop, forward ? highest : lowest, length, lowest, highest));
  return range;
}

absl::StatusOr<Value> SliceText(Runtime& runtime, const Value& object, const Range& range) {
  const absl::string_view text = object.text();
  const bool markup = object.IsMarkup();
  if (range.step == 1) {
    const auto count = static_cast<size_t>(range.count());
    const size_t begin = ByteOffset(text, static_cast<size_t>(range.start));
    const absl::string_view rest = text.substr(begin);
    return runtime.NewPart(object, rest.substr(0, ByteOffset(rest, count)), markup);
  }
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(text.size() * sizeof(size_t)));
  std::vector<size_t> offsets;
  for (size_t i = 0; i < text.size(); i += CodePointBytes(text[i])) offsets.push_back(i);
  std::string out;
  const int64_t count = range.count();
  for (int64_t i = 0; i < count; ++i) {
    const size_t begin = offsets[static_cast<size_t>(range.start + i * range.step)];
    out.append(text.data() + begin, CodePointBytes(text[begin]));
  }
  const LiteralScope literal(runtime, MayBeLiteral(object));
  return runtime.NewText(std::move(out), markup);
}

}  // namespace

absl::StatusOr<Value> GetAttribute(Runtime& runtime, const Value& object, absl::string_view name) {
  if (object.IsUndefined()) return UndefinedError(object);
  LLM_ASSIGN_OR_RETURN(Value found, Method(runtime, object, name));
  if (!found.IsUndefined() || !object.IsDict()) return found;
  const Value* item = FindEntry(object.dict(), name);
  return item != nullptr ? *item : found;
}

absl::StatusOr<Value> GetItem(Runtime& runtime, const Value& object, const Value& key) {
  if (object.IsUndefined()) return UndefinedError(object);
  if (object.IsDict()) {
    const Value* item = FindEntry(object.dict(), key);
    if (item != nullptr) return *item;
  }
  if (key.IsIntegral() && object.IsText()) return TextItem(runtime, object, key.integer());
  if (key.IsIntegral() && object.IsSequence()) {
    const Sequence& sequence = *object.sequence();
    const bool indexable = sequence.IsListOrTuple() || sequence.kind == SequenceKind::kRange;
    size_t index = 0;
    if (indexable && ResolveIndex(key.integer(), sequence.items.size(), &index)) {
      return sequence.items[index];
    }
  }
  if (key.IsText()) return Method(runtime, object, key.text());
  return Missing(object, key.IsIntegral() ? absl::StrCat(key.integer()) : key.TypeName());
}

absl::StatusOr<Value> Slice(Runtime& runtime, const Value& object, const Value& start,
                            const Value& stop, const Value& step) {
  if (object.IsUndefined()) return UndefinedError(object);
  if (object.IsText()) {
    LLM_RETURN_IF_ERROR(runtime.budget().Scan(object.text().size()));
    LLM_ASSIGN_OR_RETURN(const Range range,
                         ResolveSlice(start, stop, step, CodePointCount(object.text())));
    return SliceText(runtime, object, range);
  }
  const bool sliceable = object.IsSequence() && (object.sequence()->IsListOrTuple() ||
                                                 object.sequence()->kind == SequenceKind::kRange);
  if (!sliceable) return Missing(object, "slice");
  const Sequence& sequence = *object.sequence();
  LLM_ASSIGN_OR_RETURN(const Range range, ResolveSlice(start, stop, step, sequence.items.size()));
  const int64_t count = range.count();
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(static_cast<uint64_t>(count) * sizeof(Value)));
  std::vector<Value> items;
  items.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    items.push_back(sequence.items[static_cast<size_t>(range.start + i * range.step)]);
  }
  return runtime.NewList(std::move(items), sequence.kind);
}

}  // namespace llm::jinja
