// What may follow `is`, and be named in select and reject.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/arguments.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/print.h"
#include "src/tokenizer/jinja/utf8.h"

namespace llm::jinja {
namespace {

using Result = absl::StatusOr<bool>;

template <bool (Value::*kQuestion)() const>
Result Is(Runtime&, const Value& self, const Arguments&) {
  return (self.*kQuestion)();
}

Result Defined(Runtime&, const Value& self, const Arguments&) { return !self.IsUndefined(); }
Result True(Runtime&, const Value& self, const Arguments&) {
  return self.IsBool() && self.boolean();
}
Result False(Runtime&, const Value& self, const Arguments&) {
  return self.IsBool() && !self.boolean();
}

// Whatever Python's iter() takes; an undefined value counts, since it iterates over nothing.
Result Iterable(Runtime&, const Value& self, const Arguments&) {
  return self.IsUndefined() || self.IsText() || self.IsDict() || self.IsSequence() || self.IsLoop();
}

// Whatever has a length and items by subscript; a dict counts.
Result IsSequenceTest(Runtime&, const Value& self, const Arguments&) {
  const bool indexable = self.IsSequence() && (self.sequence()->IsListOrTuple() ||
                                               self.sequence()->kind == SequenceKind::kRange);
  return self.IsText() || self.IsDict() || self.IsUndefined() || indexable;
}

Result Callable_(Runtime&, const Value& self, const Arguments&) {
  return self.IsCallable() || self.IsLoop();
}

template <CompareOp kOp>
Result Compares(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"other"}, 1));
  return Compare(runtime, kOp, self, bound[0]);
}

Result SameAs(Runtime&, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"other"}, 1));
  return self.SameObject(bound[0]);
}

Result Remainder(Runtime& runtime, const Value& self, const Value& divisor, int64_t wanted) {
  LLM_ASSIGN_OR_RETURN(const Value rest, Arithmetic(runtime, BinaryOp::kModulo, self, divisor));
  return Equal(runtime, rest, Value::Int(wanted));
}

Result Odd(Runtime& runtime, const Value& self, const Arguments&) {
  return Remainder(runtime, self, Value::Int(2), 1);
}
Result Even(Runtime& runtime, const Value& self, const Arguments&) {
  return Remainder(runtime, self, Value::Int(2), 0);
}
Result DivisibleBy(Runtime& runtime, const Value& self, const Arguments& arguments) {
  LLM_ASSIGN_OR_RETURN(const Bound bound, Bind(arguments, {"num"}, 1));
  return Remainder(runtime, self, bound[0], 0);
}

// Python's isupper and islower: at least one letter with case, and none of the other.
template <uint32_t (*kConvert)(uint32_t), uint32_t (*kOther)(uint32_t)>
Result HasCase(Runtime& runtime, const Value& self, const Arguments&) {
  LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime, self));
  bool found = false;
  for (size_t i = 0; i < text.size();) {
    const uint32_t c = NextCodePoint(text, &i);
    if (kConvert(c) != c) return false;
    found |= kOther(c) != c;
  }
  return found;
}

Result IsFilterName(Runtime&, const Value& self, const Arguments&) {
  return self.IsText() && FindFilter(self.text()) != nullptr;
}
Result IsTestName(Runtime&, const Value& self, const Arguments&) {
  return self.IsText() && FindTest(self.text()) != nullptr;
}

struct NamedTest {
  absl::string_view name;
  BuiltinTest test;
};

constexpr NamedTest kTests[] = {
    {"!=", Compares<CompareOp::kNotEqual>},
    {"<", Compares<CompareOp::kLess>},
    {"<=", Compares<CompareOp::kLessEqual>},
    {"==", Compares<CompareOp::kEqual>},
    {">", Compares<CompareOp::kGreater>},
    {">=", Compares<CompareOp::kGreaterEqual>},
    {"boolean", Is<&Value::IsBool>},
    {"callable", Callable_},
    {"defined", Defined},
    {"divisibleby", DivisibleBy},
    {"eq", Compares<CompareOp::kEqual>},
    {"equalto", Compares<CompareOp::kEqual>},
    {"escaped", Is<&Value::IsMarkup>},
    {"even", Even},
    {"false", False},
    {"filter", IsFilterName},
    {"float", Is<&Value::IsFloat>},
    {"ge", Compares<CompareOp::kGreaterEqual>},
    {"greaterthan", Compares<CompareOp::kGreater>},
    {"gt", Compares<CompareOp::kGreater>},
    {"in", Compares<CompareOp::kIn>},
    {"integer", Is<&Value::IsInt>},
    {"iterable", Iterable},
    {"le", Compares<CompareOp::kLessEqual>},
    {"lessthan", Compares<CompareOp::kLess>},
    {"lower", HasCase<ToLower, ToUpper>},
    {"lt", Compares<CompareOp::kLess>},
    {"mapping", Is<&Value::IsDict>},
    {"ne", Compares<CompareOp::kNotEqual>},
    {"none", Is<&Value::IsNone>},
    {"number", Is<&Value::IsNumber>},
    {"odd", Odd},
    {"sameas", SameAs},
    {"sequence", IsSequenceTest},
    {"string", Is<&Value::IsText>},
    {"test", IsTestName},
    {"true", True},
    {"undefined", Is<&Value::IsUndefined>},
    {"upper", HasCase<ToUpper, ToLower>},
};

}  // namespace

BuiltinTest FindTest(absl::string_view name) {
  for (const NamedTest& test : kTests) {
    if (test.name == name) return test.test;
  }
  return nullptr;
}

}  // namespace llm::jinja
