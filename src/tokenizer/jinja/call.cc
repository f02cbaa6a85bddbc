// Suffixes of an expression, and calls of built-ins, macros and recursive loops.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/interpreter.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/loop.h"
#include "src/tokenizer/jinja/operators.h"
#include "src/tokenizer/jinja/parser.h"

namespace llm::jinja {
namespace {

absl::Status InCall(const absl::Status& status, absl::string_view what, absl::string_view name) {
  if (status.code() != absl::StatusCode::kInvalidArgument) return status;
  return absl::InvalidArgumentError(absl::StrCat(what, " '", name, "': ", status.message()));
}

}  // namespace

absl::Status Interpreter::ApplySuffix(const Suffix& suffix, Value* value) {
  LLM_RETURN_IF_ERROR(runtime_.budget().Step());
  switch (suffix.kind) {
    case SuffixKind::kAttribute: {
      LLM_ASSIGN_OR_RETURN(*value, GetAttribute(runtime_, *value, suffix.name));
      return absl::OkStatus();
    }
    case SuffixKind::kItem: {
      LLM_ASSIGN_OR_RETURN(const Value key, Evaluate(*suffix.bounds[0]));
      LLM_ASSIGN_OR_RETURN(*value, GetItem(runtime_, *value, key));
      return absl::OkStatus();
    }
    case SuffixKind::kSlice:
      return ApplySlice(suffix, value);
    case SuffixKind::kCall:
      return ApplyCall(suffix, value);
    case SuffixKind::kFilter:
      return ApplyFilter(suffix, value);
    case SuffixKind::kTest:
      return ApplyTest(suffix, value);
  }
  return absl::OkStatus();
}

absl::Status Interpreter::ApplySlice(const Suffix& suffix, Value* value) {
  LLM_ASSIGN_OR_RETURN(const Value start, EvaluateOptional(suffix.bounds[0]));
  LLM_ASSIGN_OR_RETURN(const Value stop, EvaluateOptional(suffix.bounds[1]));
  LLM_ASSIGN_OR_RETURN(const Value step, EvaluateOptional(suffix.bounds[2]));
  LLM_ASSIGN_OR_RETURN(*value, Slice(runtime_, *value, start, stop, step));
  return absl::OkStatus();
}

absl::Status Interpreter::ApplyCall(const Suffix& suffix, Value* value) {
  Arguments arguments;
  LLM_RETURN_IF_ERROR(EvaluateArguments(suffix.arguments, &arguments));
  LLM_ASSIGN_OR_RETURN(*value, Call(*value, arguments));
  return absl::OkStatus();
}

absl::Status Interpreter::ApplyFilter(const Suffix& suffix, Value* value) {
  Arguments arguments;
  LLM_RETURN_IF_ERROR(EvaluateArguments(suffix.arguments, &arguments));
  absl::StatusOr<Value> result = runtime_.CallFilter(suffix.name, *value, arguments);
  if (!result.ok()) return InCall(result.status(), "filter", suffix.name);
  *value = *std::move(result);
  return absl::OkStatus();
}

absl::Status Interpreter::ApplyTest(const Suffix& suffix, Value* value) {
  Arguments arguments;
  LLM_RETURN_IF_ERROR(EvaluateArguments(suffix.arguments, &arguments));
  const absl::StatusOr<bool> holds = runtime_.CallTest(suffix.name, *value, arguments);
  if (!holds.ok()) return InCall(holds.status(), "test", suffix.name);
  *value = Value::Bool(*holds != suffix.negated);
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::ApplyFilters(const Expression& filters, Value value) {
  for (const Suffix& suffix : static_cast<const PostfixExpression&>(filters).suffixes) {
    LLM_RETURN_IF_ERROR(ApplySuffix(suffix, &value));
  }
  return value;
}

absl::Status Interpreter::EvaluateArguments(const std::vector<Argument>& nodes,
                                            Arguments* arguments) {
  for (const Argument& node : nodes) {
    LLM_ASSIGN_OR_RETURN(Value value, Evaluate(*node.value));
    if (node.kind == ArgumentKind::kPositional) {
      arguments->positional.push_back(std::move(value));
    } else if (node.kind == ArgumentKind::kNamed) {
      arguments->named.emplace_back(node.name, std::move(value));
    } else if (node.kind == ArgumentKind::kUnpackList) {
      LLM_ASSIGN_OR_RETURN(const auto items, runtime_.Items(value));
      LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(items->items.size() * sizeof(Value)));
      arguments->positional.insert(arguments->positional.end(), items->items.begin(),
                                   items->items.end());
    } else {
      if (!value.IsDict()) return absl::InvalidArgumentError("** needs a dict");
      for (const Dict::Entry& entry : value.dict().entries) {
        if (!entry.key.IsText()) return absl::InvalidArgumentError("** needs string keys");
        LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(64 + entry.key.text().size()));
        arguments->named.emplace_back(std::string(entry.key.text()), entry.value);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::Call(const Value& callee, const Arguments& arguments) {
  if (callee.IsUndefined()) return absl::InvalidArgumentError(callee.UndefinedReason());
  if (callee.IsLoop()) return CallLoop(*callee.loop(), arguments);
  if (!callee.IsCallable()) {
    return absl::InvalidArgumentError(absl::StrCat("'", callee.TypeName(), "' is not callable"));
  }
  const Callable& callable = callee.callable();
  if (callable.macro != nullptr) return CallMacro(callable, arguments);
  const Value& self = callable.self;
  LLM_RETURN_IF_ERROR(runtime_.budget().Scan(self.IsText() ? self.text().size() : 0));
  const LiteralScope literal(runtime_, runtime_.marks_literal() && MayBeLiteral(self, arguments));
  absl::StatusOr<Value> result = callable.builtin(runtime_, self, arguments);
  if (!result.ok()) return InCall(result.status(), "function", callable.name);
  return result;
}

absl::StatusOr<Value> Interpreter::MakeMacro(const MacroStatement& macro) {
  LLM_RETURN_IF_ERROR(PinFrames());
  LLM_RETURN_IF_ERROR(runtime_.budget().ChargeBytes(sizeof(Callable) + macro.name.size()));
  auto callable = std::make_shared<Callable>();
  callable->name = macro.name;
  callable->macro = &macro;
  callable->frame = frame_;
  return Value::Of(std::shared_ptr<const Callable>(std::move(callable)));
}

absl::StatusOr<Value> Interpreter::CallMacro(const Callable& callable, const Arguments& arguments) {
  CallGuard call(runtime_.budget());
  LLM_RETURN_IF_ERROR(call.status());
  Scope scope(*this, callable.frame);
  LLM_RETURN_IF_ERROR(BindMacro(*callable.macro, arguments));
  return CaptureBody(callable.macro->body);
}

absl::Status Interpreter::BindMacro(const MacroStatement& macro, const Arguments& arguments) {
  // Binding compares every name with every other.
  const size_t names = macro.parameters.size() + arguments.named.size();
  LLM_RETURN_IF_ERROR(runtime_.budget().Step(names * names / 32));
  LLM_RETURN_IF_ERROR(BindPositional(macro, arguments));
  LLM_RETURN_IF_ERROR(BindNamed(macro, arguments));
  return BindDefaults(macro);
}

absl::Status Interpreter::BindPositional(const MacroStatement& macro, const Arguments& arguments) {
  const auto& given = arguments.positional;
  const size_t bound = std::min(given.size(), macro.parameters.size());
  for (size_t i = 0; i < bound; ++i) frame_->Set(macro.parameters[i].id, given[i]);
  if (macro.uses_varargs) {
    std::vector<Value> rest(given.begin() + static_cast<std::ptrdiff_t>(bound), given.end());
    LLM_ASSIGN_OR_RETURN(Value varargs, runtime_.NewList(std::move(rest), SequenceKind::kTuple));
    frame_->Set(kVarargsName, std::move(varargs));
  } else if (given.size() > bound) {
    return absl::InvalidArgumentError(absl::StrCat("macro '", macro.name, "' takes at most ",
                                                   macro.parameters.size(), " arguments, got ",
                                                   given.size()));
  }
  return absl::OkStatus();
}

absl::Status Interpreter::BindNamed(const MacroStatement& macro, const Arguments& arguments) {
  Dict rest;
  const size_t positional = std::min(arguments.positional.size(), macro.parameters.size());
  for (const auto& [name, value] : arguments.named) {
    const auto parameter =
        std::find_if(macro.parameters.begin(), macro.parameters.end(),
                     [&name = name](const MacroParameter& p) { return p.name == name; });
    if (parameter != macro.parameters.end()) {
      if (static_cast<size_t>(parameter - macro.parameters.begin()) < positional) {
        return absl::InvalidArgumentError(
            absl::StrCat("macro '", macro.name, "': two values for '", name, "'"));
      }
      frame_->Set(parameter->id, value);
    } else if (name == "caller" && macro.uses_caller) {
      frame_->Set(kCallerName, value);
    } else if (macro.uses_kwargs) {
      const LiteralScope literal(runtime_, runtime_.marks_literal());  // ** may have brought it
      LLM_ASSIGN_OR_RETURN(Value key, runtime_.NewText(name));
      LLM_RETURN_IF_ERROR(runtime_.AddEntry(&rest, std::move(key), value));
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("macro '", macro.name, "' takes no argument '", name.substr(0, 80), "'"));
    }
  }
  if (!macro.uses_kwargs) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(Value kwargs, runtime_.NewDict(std::move(rest)));
  frame_->Set(kKwargsName, std::move(kwargs));
  return absl::OkStatus();
}

// In order, so that a default may use the parameters before it.
absl::Status Interpreter::BindDefaults(const MacroStatement& macro) {
  const auto is_set = [this](NameId name) {
    return std::any_of(frame_->variables.begin(), frame_->variables.end(),
                       [name](const auto& variable) { return variable.first == name; });
  };
  for (const MacroParameter& parameter : macro.parameters) {
    if (is_set(parameter.id)) continue;
    Value value =
        Value::Undefined(absl::StrCat("parameter '", parameter.name, "' was not provided"));
    if (parameter.fallback != nullptr) {
      LLM_ASSIGN_OR_RETURN(value, Evaluate(*parameter.fallback));
    }
    frame_->Set(parameter.id, std::move(value));
  }
  if (macro.uses_caller && !is_set(kCallerName)) {
    frame_->Set(kCallerName,
                Value::Undefined("no caller: the macro was not called by a call block"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Value> Interpreter::CallLoop(const Loop& loop, const Arguments& arguments) {
  if (loop.statement == nullptr) {
    return absl::InvalidArgumentError("a loop that calls itself needs the word 'recursive'");
  }
  if (arguments.positional.size() != 1 || !arguments.named.empty()) {
    return absl::InvalidArgumentError("loop() takes what to iterate over");
  }
  CallGuard call(runtime_.budget());
  LLM_RETURN_IF_ERROR(call.status());
  Scope scope(*this, loop.frame);
  Capture capture(*this);
  LLM_RETURN_IF_ERROR(RunLoop(*loop.statement, arguments.positional[0], loop.depth + 1));
  return NewCaptured(capture.TakeOutput());
}

}  // namespace llm::jinja
