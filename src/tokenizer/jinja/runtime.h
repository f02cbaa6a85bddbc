// What one rendering shares with the built-ins: the budget, the clock, and the making of values
// within the budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/budget.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

class Runtime {
 public:
  Runtime(const ChatTemplateLimits& limits, int64_t now_s) : budget_(limits), now_s_(now_s) {}
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  ~Runtime();

  // Marks, from now on, what comes out of the chat's data (literal.h); without it nothing is
  // marked.
  void set_marks_literal() { marks_literal_ = true; }
  bool marks_literal() const { return marks_literal_; }

  Budget& budget() { return budget_; }
  int64_t now_s() const { return now_s_; }

  // Each charges the budget for what it keeps. RESOURCE_EXHAUSTED also when a container would nest
  // too deep.
  absl::StatusOr<Value> NewText(std::string text, bool markup = false);
  absl::StatusOr<Value> NewText(absl::string_view text) { return NewText(std::string(text)); }
  absl::StatusOr<Value> NewText(std::string text, TextSpans literal, bool markup = false);
  // `part` of the text of `whole`, marked as it is there. A view of other text is just text.
  absl::StatusOr<Value> NewPart(const Value& whole, absl::string_view part, bool markup = false);
  // Adds the marks of `value`, whose text now stands at [begin, end) of the text of `literal`.
  absl::Status Mark(const Value& value, size_t begin, size_t end, TextSpans* literal);
  absl::StatusOr<Value> NewList(std::vector<Value> items, SequenceKind kind = SequenceKind::kList);
  absl::StatusOr<Value> NewDict(Dict dict);
  absl::StatusOr<Value> NewNamespace();
  // REQUIRES: a `builtin`; `self` is what it is bound to.
  absl::StatusOr<Value> NewFunction(absl::string_view name, Builtin builtin, const Value& self);
  absl::Status AddEntry(Dict* dict, Value key, Value value);

  // What a for loop over `value` visits. A generator is empty afterwards.
  absl::StatusOr<std::shared_ptr<const Sequence>> Items(const Value& value);

  // INVALID_ARGUMENT when there is no filter or test of that name.
  absl::StatusOr<Value> CallFilter(absl::string_view name, const Value& value,
                                   const Arguments& arguments);
  absl::StatusOr<bool> CallTest(absl::string_view name, const Value& value,
                                const Arguments& arguments);

 private:
  friend class LiteralScope;

  absl::Status CheckDepth(uint32_t depth) const;

  Budget budget_;
  int64_t now_s_;
  bool marks_literal_ = false;
  bool makes_literal_ = false;  // see LiteralScope
  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

// While in scope, text that is made without marks is literal as a whole when `on`: what a built-in
// makes of the chat's data, and does not say which part came from where.
class LiteralScope {
 public:
  LiteralScope(Runtime& runtime, bool on)
      : runtime_(runtime), outer_(std::exchange(runtime.makes_literal_, on)) {}
  ~LiteralScope() { runtime_.makes_literal_ = outer_; }
  LiteralScope(const LiteralScope&) = delete;
  LiteralScope& operator=(const LiteralScope&) = delete;

 private:
  Runtime& runtime_;
  const bool outer_;
};

}  // namespace llm::jinja
