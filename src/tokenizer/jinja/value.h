// A value of the template language: what a Python object is to Jinja.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/text_span.h"

namespace llm::jinja {

class Runtime;
class Value;
struct Arguments;
struct Callable;
struct Dict;
struct Frame;
struct Loop;
struct MacroStatement;
struct Namespace;
struct Sequence;

// A built-in function, filter or method. `self` is the filtered value or the method's object.
using Builtin = absl::StatusOr<Value> (*)(Runtime& runtime, const Value& self,
                                          const Arguments& arguments);

struct NoneType {};

// What a missing name or member gives. It prints as nothing; using it otherwise is an error that
// says `what`.
struct UndefinedType {
  std::shared_ptr<const std::string> what;
};

// Text is UTF-8. `markup`: came out of `safe` or `escape`; joining it with plain text escapes the
// latter for HTML.
struct Text {
  std::string text;
  bool markup = false;
  std::unique_ptr<const TextSpans> literal =
      nullptr;  // parts that came from the chat's data; null: none
};

// Values are cheap to copy: text and containers are shared and do not change once made (as in
// Jinja's immutable sandbox), except for namespaces, running loops, and generators, which can be
// read once.
class Value {
 public:
  Value() = default;  // undefined
  static Value None() { return Value(Rep(NoneType{})); }
  static Value Bool(bool value) { return Value(Rep(value)); }
  static Value Int(int64_t value) { return Value(Rep(value)); }
  static Value Float(double value) { return Value(Rep(value)); }
  static Value Undefined(std::string what) {
    return Value(Rep(UndefinedType{std::make_shared<const std::string>(std::move(what))}));
  }
  static Value Of(std::shared_ptr<const Text> text) { return Value(Rep(std::move(text))); }
  static Value Of(std::shared_ptr<Sequence> sequence) { return Value(Rep(std::move(sequence))); }
  static Value Of(std::shared_ptr<const Dict> dict) { return Value(Rep(std::move(dict))); }
  static Value Of(std::shared_ptr<const Callable> callable) {
    return Value(Rep(std::move(callable)));
  }
  static Value Of(std::shared_ptr<Loop> loop) { return Value(Rep(std::move(loop))); }
  static Value Of(Namespace* members) { return Value(Rep(members)); }

  bool IsUndefined() const { return Is<UndefinedType>(); }
  bool IsNone() const { return Is<NoneType>(); }
  bool IsBool() const { return Is<bool>(); }
  bool IsInt() const { return Is<int64_t>(); }
  bool IsFloat() const { return Is<double>(); }
  bool IsText() const { return Is<std::shared_ptr<const Text>>(); }
  bool IsSequence() const { return Is<std::shared_ptr<Sequence>>(); }
  bool IsDict() const { return Is<std::shared_ptr<const Dict>>(); }
  bool IsNamespace() const { return Is<Namespace*>(); }
  bool IsCallable() const { return Is<std::shared_ptr<const Callable>>(); }
  bool IsLoop() const { return Is<std::shared_ptr<Loop>>(); }
  bool IsIntegral() const { return IsBool() || IsInt(); }  // a bool counts as 0 or 1
  bool IsNumber() const { return IsIntegral() || IsFloat(); }
  bool IsMarkup() const { return IsText() && text_object().markup; }

  // REQUIRES: the kind asked for.
  bool boolean() const { return std::get<bool>(rep_); }
  int64_t integer() const { return IsBool() ? int64_t{boolean()} : std::get<int64_t>(rep_); }
  double number() const {
    return IsFloat() ? std::get<double>(rep_) : static_cast<double>(integer());
  }
  const Text& text_object() const { return *std::get<std::shared_ptr<const Text>>(rep_); }
  absl::string_view text() const { return text_object().text; }
  const std::shared_ptr<Sequence>& sequence() const {
    return std::get<std::shared_ptr<Sequence>>(rep_);
  }
  const Dict& dict() const { return *std::get<std::shared_ptr<const Dict>>(rep_); }
  Namespace* members() const { return std::get<Namespace*>(rep_); }
  const Callable& callable() const { return *std::get<std::shared_ptr<const Callable>>(rep_); }
  const std::shared_ptr<Loop>& loop() const { return std::get<std::shared_ptr<Loop>>(rep_); }

  // Python's truth value.
  bool Truth() const;
  // "dict object", "None": how messages call this value.
  std::string TypeName() const;
  // The same object in memory; equal scalars are not the same object.
  bool SameObject(const Value& other) const;
  // Levels of containers in this value; 0 for a scalar.
  uint32_t Depth() const;
  // Why an undefined value is undefined. REQUIRES: IsUndefined().
  std::string UndefinedReason() const;

 private:
  using Rep =
      std::variant<UndefinedType, NoneType, bool, int64_t, double, std::shared_ptr<const Text>,
                   std::shared_ptr<Sequence>, std::shared_ptr<const Dict>,
                   std::shared_ptr<const Callable>, std::shared_ptr<Loop>, Namespace*>;
  explicit Value(Rep rep) : rep_(std::move(rep)) {}
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(rep_);
  }

  Rep rep_;
};

// The kinds differ in printing, in equality, and in what a filter accepts.
enum class SequenceKind { kList, kTuple, kRange, kGenerator, kKeys, kValues, kItems };

struct Sequence {
  SequenceKind kind = SequenceKind::kList;
  std::vector<Value> items;
  uint32_t depth = 1;
  bool IsListOrTuple() const { return kind == SequenceKind::kList || kind == SequenceKind::kTuple; }
};

// Keeps the order of insertion, as Python's dict.
struct Dict {
  struct Entry {
    Value key;
    Value value;
  };
  std::vector<Entry> entries;
  std::map<std::string, size_t, std::less<>> index;  // encoded key (dict.h) -> position in entries
  uint32_t depth = 1;
};

// Owned by the runtime, not by its values: a namespace may hold itself, which would never be freed
// by counting.
struct Namespace {
  std::vector<std::pair<std::string, Value>> members;

  const Value* Find(absl::string_view name) const;
  void Set(absl::string_view name, Value value);
};

// A built-in bound to an object, or a macro (with the frame that it was defined in, which the
// interpreter keeps alive).
struct Callable {
  std::string name;
  Builtin builtin = nullptr;
  Value self;
  const MacroStatement* macro = nullptr;
  Frame* frame = nullptr;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

}  // namespace llm::jinja
