// Renders one template once: walks its tree within the runtime's budget.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/tokenizer/jinja/ast.h"
#include "src/tokenizer/jinja/runtime.h"

namespace llm::jinja {

// The variables of one scope. A frame that a macro or a recursive loop refers to is pinned: it
// stays until the end of the rendering, since the macro may be kept in a namespace.
struct Frame {
  Frame* parent = nullptr;
  bool pinned = false;
  std::vector<std::pair<NameId, Value>> variables;

  void Set(NameId name, Value value);
};

class Interpreter {
 public:
  // All three outlive the interpreter. `context` is what the caller passed: the outermost
  // variables.
  Interpreter(const Template& parsed, const Dict& context, Runtime& runtime)
      : template_(parsed), context_(context), runtime_(runtime) {}
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  absl::StatusOr<RenderedChat> Run();

 private:
  enum class Flow { kNormal, kBreak, kContinue };
  class Scope;
  class Capture;

  // Statements (interpreter.cc, run_loop.cc).
  absl::Status ExecuteBody(const Body& body);
  absl::Status Execute(const Statement& statement);
  absl::Status ExecutePrint(const PrintStatement& print);
  absl::Status ExecuteIf(const IfStatement& statement);
  absl::Status ExecuteFor(const ForStatement& statement);
  absl::Status ExecuteSet(const SetStatement& set);
  absl::Status ExecuteSetBlock(const SetBlockStatement& set);
  absl::Status ExecuteMacro(const MacroStatement& macro);
  absl::Status ExecuteCallBlock(const CallBlockStatement& call);
  absl::Status ExecuteFilterBlock(const FilterBlockStatement& block);
  absl::Status ExecuteScope(const ScopeStatement& scope);
  absl::StatusOr<std::shared_ptr<const Sequence>> FilterItems(
      const ForStatement& statement, const std::shared_ptr<const Sequence>& items);
  absl::Status RunLoop(const ForStatement& statement, const Value& iterated, size_t depth);
  absl::Status RunRounds(const ForStatement& statement, const std::shared_ptr<Loop>& loop);
  absl::StatusOr<Value> CaptureBody(const Body& body);
  absl::StatusOr<Value> NewCaptured(RenderedChat output);
  absl::Status Emit(absl::string_view text);
  absl::Status Print(const Value& value);

  // Variables (interpreter.cc).
  absl::StatusOr<Value> Lookup(NameId name);
  absl::Status Assign(const Target& target, const Value& value);
  absl::Status PinFrames();

  // Expressions (evaluate.cc).
  absl::StatusOr<Value> Evaluate(const Expression& expression);
  absl::StatusOr<Value> EvaluateItems(const ItemsExpression& node);
  absl::StatusOr<Value> EvaluateDict(const DictExpression& node);
  absl::StatusOr<Value> EvaluateArithmetic(const ArithmeticExpression& node);
  absl::StatusOr<Value> EvaluateConcat(const ConcatExpression& node);
  absl::StatusOr<Value> EvaluateCompare(const CompareExpression& node);
  absl::StatusOr<Value> EvaluateLogical(const LogicalExpression& node);
  absl::StatusOr<Value> EvaluateNot(const NotExpression& node);
  absl::StatusOr<Value> EvaluateSign(const SignExpression& node);
  absl::StatusOr<Value> EvaluateConditional(const ConditionalExpression& node);
  absl::StatusOr<Value> EvaluatePostfix(const PostfixExpression& node);
  absl::StatusOr<Value> EvaluateOptional(const ExpressionPtr& expression);

  // Suffixes and calls (call.cc).
  absl::Status ApplySuffix(const Suffix& suffix, Value* value);
  absl::Status ApplySlice(const Suffix& suffix, Value* value);
  absl::Status ApplyCall(const Suffix& suffix, Value* value);
  absl::Status ApplyFilter(const Suffix& suffix, Value* value);
  absl::Status ApplyTest(const Suffix& suffix, Value* value);
  absl::StatusOr<Value> ApplyFilters(const Expression& filters, Value value);
  absl::Status EvaluateArguments(const std::vector<Argument>& nodes, Arguments* arguments);
  absl::StatusOr<Value> Call(const Value& callee, const Arguments& arguments);
  absl::StatusOr<Value> CallMacro(const Callable& callable, const Arguments& arguments);
  absl::Status BindMacro(const MacroStatement& macro, const Arguments& arguments);
  absl::Status BindPositional(const MacroStatement& macro, const Arguments& arguments);
  absl::Status BindNamed(const MacroStatement& macro, const Arguments& arguments);
  absl::Status BindDefaults(const MacroStatement& macro);
  absl::StatusOr<Value> CallLoop(const Loop& loop, const Arguments& arguments);
  absl::StatusOr<Value> MakeMacro(const MacroStatement& macro);

  const Template& template_;
  const Dict& context_;
  Runtime& runtime_;
  Frame root_;
  Frame* frame_ = &root_;
  std::vector<std::unique_ptr<Frame>> pinned_;
  RenderedChat output_;
  RenderedChat* out_ = &output_;  // or the innermost capture
  Flow flow_ = Flow::kNormal;     // what the loop around has to do
};

// A new innermost frame while in scope.
class Interpreter::Scope {
 public:
  Scope(Interpreter& interpreter, Frame* parent)
      : interpreter_(interpreter), outer_(interpreter.frame_), frame_(std::make_unique<Frame>()) {
    frame_->parent = parent;
    interpreter_.frame_ = frame_.get();
  }
  ~Scope() {
    interpreter_.frame_ = outer_;
    if (frame_->pinned) interpreter_.pinned_.push_back(std::move(frame_));
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Interpreter& interpreter_;
  Frame* outer_;
  std::unique_ptr<Frame> frame_;
};

// Sends output to a text of its own while in scope.
class Interpreter::Capture {
 public:
  explicit Capture(Interpreter& interpreter)
      : interpreter_(interpreter), outer_(std::exchange(interpreter.out_, &output_)) {}
  ~Capture() { interpreter_.out_ = outer_; }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  RenderedChat TakeOutput() { return std::move(output_); }

 private:
  Interpreter& interpreter_;
  RenderedChat output_;
  RenderedChat* outer_;
};

}  // namespace llm::jinja
