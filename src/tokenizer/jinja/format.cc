// Walks the format text; values are laid out by FormatValue.
#include "src/tokenizer/jinja/format.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/jinja/dict.h"
#include "src/tokenizer/jinja/literal.h"
#include "src/tokenizer/jinja/print.h"

namespace llm::jinja {
namespace {

constexpr size_t kNone = absl::string_view::npos;

absl::Status Append(Runtime& runtime, absl::string_view text, std::string* out) {
  LLM_RETURN_IF_ERROR(runtime.budget().ChargeBytes(text.size()));
  out->append(text.data(), text.size());
  return absl::OkStatus();
}

// The parts that are not fields are the format's: literal with it.
absl::StatusOr<Value> NewFormatted(Runtime& runtime, const Value& format, std::string text,
                                   TextSpans literal) {
  if (MayBeLiteral(format)) return runtime.NewText(std::move(text));
  return runtime.NewText(std::move(text), std::move(literal));
}

class PercentFormatter {
 public:
  PercentFormatter(Runtime& runtime, const Value& format, const Value& arguments)
      : runtime_(runtime), format_(format), rest_(format.text()), arguments_(arguments) {}

  absl::StatusOr<Value> Run() {
    while (!rest_.empty()) {
      const size_t percent = rest_.find('%');
      LLM_RETURN_IF_ERROR(Append(runtime_, rest_.substr(0, percent), &out_));
      if (percent == kNone) break;
      rest_.remove_prefix(percent + 1);
      LLM_RETURN_IF_ERROR(FormatDirective());
    }
    const bool tuple = IsTuple();
    if (tuple ? next_ < arguments_.sequence()->items.size()
              : next_ == 0 && !arguments_.IsDict() && !arguments_.IsSequence()) {
      return absl::InvalidArgumentError("not all arguments were used by the format");
    }
    return NewFormatted(runtime_, format_, std::move(out_), std::move(literal_));
  }

 private:
  bool IsTuple() const {
    return arguments_.IsSequence() && arguments_.sequence()->kind == SequenceKind::kTuple;
  }

  absl::StatusOr<Value> NextArgument() {
    if (!IsTuple() && next_++ == 0) return arguments_;
    if (IsTuple() && next_ < arguments_.sequence()->items.size()) {
      return arguments_.sequence()->items[next_++];
    }
    return absl::InvalidArgumentError("not enough arguments for the format");
  }

  absl::StatusOr<Value> NamedArgument() {
    const size_t end = rest_.find(')');
    if (end == kNone || !arguments_.IsDict()) {
      return absl::InvalidArgumentError("%(name) needs a closing bracket and a dict");
    }
    const Value* value = FindEntry(arguments_.dict(), rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    if (value == nullptr) return absl::InvalidArgumentError("the format names a missing key");
    return *value;
  }

  absl::Status FormatDirective() {
    if (!rest_.empty() && rest_[0] == '%') {
      rest_.remove_prefix(1);
      return Append(runtime_, "%", &out_);
    }
    Value value;
    const bool named = !rest_.empty() && rest_[0] == '(';
    if (named) {
      LLM_ASSIGN_OR_RETURN(value, NamedArgument());
    }
    const size_t end = rest_.find_first_not_of("-+ #0123456789.");
    if (end == kNone) return absl::InvalidArgumentError("the format ends in a directive");
    LLM_ASSIGN_OR_RETURN(FormatSpec spec, ParseFlags(rest_.substr(0, end)));
    spec.type = rest_[end];
    rest_.remove_prefix(end + 1);
    if (!named) {
      LLM_ASSIGN_OR_RETURN(value, NextArgument());
    }
    return FormatArgument(std::move(value), spec);
  }

  // printf's flags, as a format spec.
  static absl::StatusOr<FormatSpec> ParseFlags(absl::string_view flags) {
    const size_t end = std::min(flags.find_first_not_of("-+ #0"), flags.size());
    const absl::string_view marks = flags.substr(0, end);
    LLM_ASSIGN_OR_RETURN(FormatSpec spec, ParseFormatSpec(flags.substr(end)));
    const auto has = [marks](char mark) { return marks.find(mark) != kNone; };
    if (has(' ')) spec.sign = ' ';
    if (has('+')) spec.sign = '+';
    spec.alternate = has('#');
    spec.align = '>';
    if (has('0')) {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    if (has('-')) {
      spec.align = '<';
      spec.fill.assign(1, ' ');
    }
    return spec;
  }

  absl::Status FormatArgument(Value value, FormatSpec spec) {
    if (spec.type == 'i' || spec.type == 'u') spec.type = 'd';
    if (spec.type == 'r') {
      std::string repr;
      LLM_RETURN_IF_ERROR(AppendRepr(runtime_, value, &repr));
      LLM_ASSIGN_OR_RETURN(value, runtime_.NewText(std::move(repr)));
      spec.type = 's';
    }
    if (spec.type == 's' && spec.fill == "0") {
      spec.fill.assign(1, ' ');
      spec.align = '>';
    }
    if (spec.type == 'd' && value.IsFloat() && value.number() > -9e18 && value.number() < 9e18) {
      value = Value::Int(static_cast<int64_t>(value.number()));
    }
    if (spec.type == 'c' && value.IsText()) spec.type = 's';
    if (absl::string_view("sdcxXoeEfFgG").find(spec.type) == kNone) {
      return absl::InvalidArgumentError("unknown directive in the format");
    }
    LLM_ASSIGN_OR_RETURN(const std::string text, FormatValue(runtime_, value, spec));
    LLM_RETURN_IF_ERROR(Append(runtime_, text, &out_));
    return runtime_.Mark(value, out_.size() - text.size(), out_.size(), &literal_);
  }

  Runtime& runtime_;
  const Value& format_;
  absl::string_view rest_;
  const Value& arguments_;
  size_t next_ = 0;
  std::string out_;
  TextSpans literal_;
};

absl::StatusOr<Value> FieldValue(const Arguments& arguments, absl::string_view name,
                                 size_t* next_index) {
  size_t index = 0;
  if (name.empty()) {
    index = (*next_index)++;
  } else if (!absl::SimpleAtoi(name, &index)) {
    for (const auto& [given, value] : arguments.named) {
      if (given == name) return value;
    }
    return absl::InvalidArgumentError(absl::StrCat("no argument '", name.substr(0, 80), "'"));
  }
  if (index < arguments.positional.size()) return arguments.positional[index];
  return absl::InvalidArgumentError(absl::StrCat("no argument ", index));
}

// One field, without its braces; *shown is the value that it shows.
absl::StatusOr<std::string> FormatField(Runtime& runtime, absl::string_view field,
                                        const Arguments& arguments, size_t* next_index,
                                        Value* shown) {
  const size_t colon = field.find(':');
  const absl::string_view head = field.substr(0, colon);
  const size_t mark = head.find('!');
  LLM_ASSIGN_OR_RETURN(Value value, FieldValue(arguments, head.substr(0, mark), next_index));
  *shown = value;
  if (mark != kNone) {
    std::string text;
    const absl::string_view conversion = head.substr(mark + 1);
    if (conversion == "r") {
      LLM_RETURN_IF_ERROR(AppendRepr(runtime, value, &text));
    } else if (conversion == "s") {
      LLM_RETURN_IF_ERROR(AppendText(runtime, value, &text));
    } else {
      return absl::InvalidArgumentError("unknown conversion in the format");
    }
    LLM_ASSIGN_OR_RETURN(value, runtime.NewText(std::move(text)));
  }
  if (colon == kNone) return ToText(runtime, value);
  LLM_ASSIGN_OR_RETURN(const FormatSpec spec, ParseFormatSpec(field.substr(colon + 1)));
  return FormatValue(runtime, value, spec);
}

}  // namespace

absl::StatusOr<Value> PercentFormat(Runtime& runtime, const Value& format, const Value& arguments) {
  LLM_RETURN_IF_ERROR(runtime.budget().Scan(format.text().size()));
  return PercentFormatter(runtime, format, arguments).Run();
}

absl::StatusOr<Value> BraceFormat(Runtime& runtime, const Value& whole_format,
                                  const Arguments& arguments) {
  absl::string_view format = whole_format.text();
  std::string out;
  TextSpans literal;
  size_t next_index = 0;
  while (!format.empty()) {
    const size_t brace = format.find_first_of("{}");
    LLM_RETURN_IF_ERROR(Append(runtime, format.substr(0, brace), &out));
    if (brace == kNone) break;
    format.remove_prefix(brace);
    const bool doubled = format.size() > 1 && format[0] == format[1];
    if (doubled) {
      LLM_RETURN_IF_ERROR(Append(runtime, format.substr(0, 1), &out));
      format.remove_prefix(2);
      continue;
    }
    const size_t end = format.find('}');
    if (format[0] == '}' || end == kNone) {
      return absl::InvalidArgumentError("single brace in the format");
    }
    LLM_RETURN_IF_ERROR(runtime.budget().Step(1 + arguments.named.size()));
    Value shown;
    LLM_ASSIGN_OR_RETURN(const std::string text, FormatField(runtime, format.substr(1, end - 1),
                                                             arguments, &next_index, &shown));
    LLM_RETURN_IF_ERROR(Append(runtime, text, &out));
    LLM_RETURN_IF_ERROR(runtime.Mark(shown, out.size() - text.size(), out.size(), &literal));
    format.remove_prefix(end + 1);
  }
  return NewFormatted(runtime, whole_format, std::move(out), std::move(literal));
}

}  // namespace llm::jinja
