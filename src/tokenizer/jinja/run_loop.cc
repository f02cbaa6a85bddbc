// The for block, and its `loop` variable.
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/interpreter.h"
#include "src/tokenizer/jinja/loop.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/parser.h"

namespace llm::jinja {
namespace {

// Marks the loop as over on every way out, so that nothing keeps itself alive through loop.changed.
class RunningLoop {
 public:
  explicit RunningLoop(std::shared_ptr<Loop> loop) : loop_(std::move(loop)) {}
  ~RunningLoop() {
    loop_->running = false;
    loop_->last_changed = Value();
  }
  RunningLoop(const RunningLoop&) = delete;
  RunningLoop& operator=(const RunningLoop&) = delete;

 private:
  std::shared_ptr<Loop> loop_;
};

absl::StatusOr<Value> Cycle(Runtime&, const Value& self, const Arguments& arguments) {
  if (arguments.positional.empty()) return absl::InvalidArgumentError("no items to cycle through");
  return arguments.positional[self.loop()->index % arguments.positional.size()];
}

absl::StatusOr<Value> Changed(Runtime& runtime, const Value& self, const Arguments& arguments) {
  const auto& loop = self.loop();
  LLM_ASSIGN_OR_RETURN(Value now, runtime.NewList(arguments.positional, SequenceKind::kTuple));
  LLM_ASSIGN_OR_RETURN(const bool same, Equal(runtime, loop->last_changed, now));
  if (loop->has_changed && same) return Value::Bool(false);
  loop->has_changed = true;
  if (loop->running) loop->last_changed = std::move(now);
  return Value::Bool(true);
}

Value Neighbour(const Loop& loop, size_t index, absl::string_view which) {
  if (index < loop.items->items.size()) return loop.items->items[index];
  return Value::Undefined(absl::StrCat("there is no ", which, " item"));
}

Value Function(const Value& loop, absl::string_view name, Builtin builtin) {
  auto callable = std::make_shared<Callable>();
  callable->name = std::string(name);
  callable->builtin = builtin;
  callable->self = loop;
  return Value::Of(std::shared_ptr<const Callable>(std::move(callable)));
}

}  // namespace

Value LoopAttribute(const Value& value, absl::string_view name) {
  const Loop& loop = *value.loop();
  const auto index = static_cast<int64_t>(loop.index);
  const auto length = static_cast<int64_t>(loop.items->items.size());
  const auto depth = static_cast<int64_t>(loop.depth);
  if (name == "index") return Value::Int(index + 1);
  if (name == "index0") return Value::Int(index);
  if (name == "revindex") return Value::Int(length - index);
  if (name == "revindex0") return Value::Int(length - index - 1);
  if (name == "first") return Value::Bool(index == 0);
  if (name == "last") return Value::Bool(index + 1 == length);
  if (name == "length") return Value::Int(length);
  if (name == "depth") return Value::Int(depth + 1);
  if (name == "depth0") return Value::Int(depth);
  if (name == "previtem") return Neighbour(loop, loop.index - 1, "previous");
  if (name == "nextitem") return Neighbour(loop, loop.index + 1, "next");
  if (name == "cycle") return Function(value, name, Cycle);
  if (name == "changed") return Function(value, name, Changed);
  return Value::Undefined(absl::StrCat("'loop' has no attribute '", name.substr(0, 80), "'"));
}

absl::Status Interpreter::ExecuteFor(const ForStatement& statement) {
  LLM_ASSIGN_OR_RETURN(const Value iterated, Evaluate(*statement.items));
  return RunLoop(statement, iterated, 0);
}

absl::StatusOr<std::shared_ptr<const Sequence>> Interpreter::FilterItems(
    const ForStatement& statement, const std::shared_ptr<const Sequence>& items) {
  auto kept = std::make_shared<Sequence>();
  kept->depth = items->depth;
  LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(items->items.size() * 2 * sizeof(Value)));
  for (const Value& item : items->items) {
    Scope scope(*this, frame_);
    LLM_RETURN_IF_ERROR(Assign(statement.target, item));
    LLM_ASSIGN_OR_RETURN(const Value keep, Evaluate(*statement.filter));
    if (keep.Truth()) kept->items.push_back(item);
  }
  return kept;
}

absl::Status Interpreter::RunLoop(const ForStatement& statement, const Value& iterated,
                                  size_t depth) {
  LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(sizeof(Loop)));
  auto loop = std::make_shared<Loop>();
  LLM_ASSIGN_OR_RETURN(loop->items, runtime_.Items(iterated));
  if (statement.filter != nullptr) {
    LLM_ASSIGN_OR_RETURN(loop->items, FilterItems(statement, loop->items));
  }
  if (loop->items->items.empty()) {
    Scope scope(*this, frame_);
    return ExecuteBody(statement.otherwise);
  }
  loop->depth = depth;
  if (statement.recursive) {
    LLM_RETURN_IF_ERROR(PinFrames());
    loop->statement = &statement;
    loop->frame = frame_;
  }
  RunningLoop running(loop);
  return RunRounds(statement, loop);
}

absl::Status Interpreter::RunRounds(const ForStatement& statement,
                                    const std::shared_ptr<Loop>& loop) {
  const Value loop_value = Value::Of(loop);
  for (; loop->index < loop->items->items.size(); ++loop->index) {
    LLM_RETURN_IF_ERROR(runtime_.budget().Step());
    Scope scope(*this, frame_);
    frame_->Set(kLoopName, loop_value);
    LLM_RETURN_IF_ERROR(Assign(statement.target, loop->items->items[loop->index]));
    LLM_RETURN_IF_ERROR(ExecuteBody(statement.body));
    if (std::exchange(flow_, Flow::kNormal) == Flow::kBreak) break;
  }
  return absl::OkStatus();
}

}  // namespace llm::jinja
