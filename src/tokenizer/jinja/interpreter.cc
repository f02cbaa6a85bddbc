// Statements and variables.
#include "src/tokenizer/jinja/interpreter.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/builtins.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/print.h"

namespace llm::jinja {
namespace {

// Says where, once: the innermost statement comes first.
absl::Status AtLine(absl::Status status, int line) {
  if (absl::StartsWith(status.message(), "chat template")) return status;
  return absl::Status(status.code(),
                      absl::StrCat("chat template line ", line, ": ", status.message()));
}

}  // namespace

void Frame::Set(NameId name, Value value) {
  for (auto& [id, old] : variables) {
    if (id == name) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(name, std::move(value));
}

absl::StatusOr<RenderedChat> Interpreter::Run() {
  LLM_RETURN_IF_ERROR(ExecuteBody(template_.body));
  return std::move(output_);
}

absl::Status Interpreter::ExecuteBody(const Body& body) {
  for (const auto& statement : body) {
    absl::Status status = Execute(*statement);
    if (!status.ok()) return AtLine(std::move(status), statement->line);
    if (flow_ != Flow::kNormal) break;
  }
  return absl::OkStatus();
}

absl::Status Interpreter::Execute(const Statement& statement) {
  LLM_RETURN_IF_ERROR(runtime_.budget().Step());
  DepthGuard depth(runtime_.budget());
  LLM_RETURN_IF_ERROR(depth.status());
  switch (statement.kind) {
    case StatementKind::kText:
      return Emit(static_cast<const TextStatement&>(statement).text);
    case StatementKind::kPrint:
      return ExecutePrint(static_cast<const PrintStatement&>(statement));
    case StatementKind::kIf:
      return ExecuteIf(static_cast<const IfStatement&>(statement));
    case StatementKind::kFor:
      return ExecuteFor(static_cast<const ForStatement&>(statement));
    case StatementKind::kSet:
      return ExecuteSet(static_cast<const SetStatement&>(statement));
    case StatementKind::kSetBlock:
      return ExecuteSetBlock(static_cast<const SetBlockStatement&>(statement));
    case StatementKind::kMacro:
      return ExecuteMacro(static_cast<const MacroStatement&>(statement));
    case StatementKind::kCallBlock:
      return ExecuteCallBlock(static_cast<const CallBlockStatement&>(statement));
    case StatementKind::kFilterBlock:
      return ExecuteFilterBlock(static_cast<const FilterBlockStatement&>(statement));
    case StatementKind::kScope:
      return ExecuteScope(static_cast<const ScopeStatement&>(statement));
    case StatementKind::kBreak:
      flow_ = Flow::kBreak;
      return absl::OkStatus();
    case StatementKind::kContinue:
      flow_ = Flow::kContinue;
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Interpreter::Emit(absl::string_view text) {
  LLM_RETURN_IF_ERROR(out_ == &output_ ? runtime_.budget().ChargeOutput(text.size())
                                       : runtime_.budget().ChargeBytes(text.size()));
  out_->text.append(text.data(), text.size());
  return absl::OkStatus();
}

absl::Status Interpreter::Print(const Value& value) {
  const size_t begin = out_->text.size();
  if (value.IsText()) {
    LLM_RETURN_IF_ERROR(Emit(value.text()));
  } else {
    LLM_ASSIGN_OR_RETURN(const std::string text, ToText(runtime_, value));
    LLM_RETURN_IF_ERROR(Emit(text));
  }
  return runtime_.Mark(value, begin, out_->text.size(), &out_->literal);
}

absl::Status Interpreter::ExecutePrint(const PrintStatement& print) {
  LLM_ASSIGN_OR_RETURN(const Value value, Evaluate(*print.value));
  return Print(value);
}

absl::Status Interpreter::ExecuteIf(const IfStatement& statement) {
  for (const auto& [condition, body] : statement.branches) {
    LLM_ASSIGN_OR_RETURN(const Value value, Evaluate(*condition));
    if (value.Truth()) return ExecuteBody(body);
  }
  return ExecuteBody(statement.otherwise);
}

absl::Status Interpreter::ExecuteSet(const SetStatement& set) {
  LLM_ASSIGN_OR_RETURN(const Value value, Evaluate(*set.value));
  return Assign(set.target, value);
}

absl::StatusOr<Value> Interpreter::CaptureBody(const Body& body) {
  Capture capture(*this);
  LLM_RETURN_IF_ERROR(ExecuteBody(body));
  return NewCaptured(capture.TakeOutput());
}

absl::StatusOr<Value> Interpreter::NewCaptured(RenderedChat output) {
  return runtime_.NewText(std::move(output.text), std::move(output.literal));
}

absl::Status Interpreter::ExecuteSetBlock(const SetBlockStatement& set) {
  Value value;
  {
    Scope scope(*this, frame_);
    LLM_ASSIGN_OR_RETURN(value, CaptureBody(set.body));
    if (set.filter != nullptr) {
      LLM_ASSIGN_OR_RETURN(value, ApplyFilters(*set.filter, std::move(value)));
    }
  }
  return Assign(set.target, value);
}

absl::Status Interpreter::ExecuteFilterBlock(const FilterBlockStatement& block) {
  Scope scope(*this, frame_);
  LLM_ASSIGN_OR_RETURN(Value value, CaptureBody(block.body));
  LLM_ASSIGN_OR_RETURN(value, ApplyFilters(*block.filter, std::move(value)));
  return Print(value);
}

absl::Status Interpreter::ExecuteMacro(const MacroStatement& macro) {
  LLM_ASSIGN_OR_RETURN(Value value, MakeMacro(macro));
  frame_->Set(macro.id, std::move(value));
  return absl::OkStatus();
}

absl::Status Interpreter::ExecuteCallBlock(const CallBlockStatement& call) {
  const auto& node = static_cast<const PostfixExpression&>(*call.call);
  LLM_ASSIGN_OR_RETURN(Value callee, Evaluate(*node.base));
  for (size_t i = 0; i + 1 < node.suffixes.size(); ++i) {
    LLM_RETURN_IF_ERROR(ApplySuffix(node.suffixes[i], &callee));
  }
  Arguments arguments;
  LLM_RETURN_IF_ERROR(EvaluateArguments(node.suffixes.back().arguments, &arguments));
  LLM_ASSIGN_OR_RETURN(Value caller, MakeMacro(*call.caller));
  arguments.named.emplace_back("caller", std::move(caller));
  LLM_ASSIGN_OR_RETURN(const Value result, Call(callee, arguments));
  return Print(result);
}

absl::Status Interpreter::ExecuteScope(const ScopeStatement& scope) {
  std::vector<Value> values;  // each sees the outer scope only
  for (const auto& [target, expression] : scope.assignments) {
    LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*expression));
    values.push_back(std::move(value));
  }
  Scope inner(*this, frame_);
  for (size_t i = 0; i < values.size(); ++i) {
    LLM_RETURN_IF_ERROR(Assign(scope.assignments[i].first, values[i]));
  }
  return ExecuteBody(scope.body);
}

absl::StatusOr<Value> Interpreter::Lookup(NameId name) {
  uint64_t visited = 0;
  for (const Frame* frame = frame_; frame != nullptr; frame = frame->parent) {
    visited += 1 + frame->variables.size();
    for (const auto& [id, value] : frame->variables) {
      if (id == name) return value;
    }
    LLM_RETURN_IF_ERROR(runtime_.budget().Step(std::exchange(visited, visited % 32) / 32));
  }
  const std::string& text = template_.names[name];
  if (const Value* value = FindEntry(context_, text); value != nullptr) return *value;
  if (const Builtin builtin = FindGlobal(text); builtin != nullptr) {
    return runtime_.NewFunction(text, builtin, Value::None());
  }
  return Value::Undefined(absl::StrCat("'", text.substr(0, 80), "' is undefined"));
}

absl::Status Interpreter::Assign(const Target& target, const Value& value) {
  if (target.is_tuple) {
    LLM_ASSIGN_OR_RETURN(const auto items, runtime_.Items(value));
    if (items->items.size() != target.items.size()) {
      return absl::InvalidArgumentError(absl::StrCat("cannot unpack ", items->items.size(),
                                                     " values into ", target.items.size()));
    }
    for (size_t i = 0; i < target.items.size(); ++i) {
      LLM_RETURN_IF_ERROR(Assign(target.items[i], items->items[i]));
    }
    return absl::OkStatus();
  }
  LLM_RETURN_IF_ERROR(runtime_.budget().Step(1 + frame_->variables.size() / 32));
  if (target.member.empty()) {
    frame_->Set(target.name, value);
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(const Value object, Lookup(target.name));
  if (!object.IsNamespace()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot assign a member of '", object.TypeName(), "'"));
  }
  LLM_RETURN_IF_ERROR(runtime_.budget().Step(object.members()->members.size() / 16));
  object.members()->Set(target.member, value);
  return absl::OkStatus();
}

// Pinned frames are paid for here; what they hold was paid when it was made.
absl::Status Interpreter::PinFrames() {
  for (Frame* frame = frame_; frame != nullptr && !frame->pinned; frame = frame->parent) {
    LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(
        sizeof(Frame) + 2 * frame->variables.size() * sizeof(frame->variables[0])));
    frame->pinned = true;
  }
  return absl::OkStatus();
}

}  // namespace llm::jinja
