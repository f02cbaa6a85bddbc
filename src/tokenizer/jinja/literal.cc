// Spans are found by bisection: a text of many is cut into many parts.
#include "src/tokenizer/jinja/literal.h"

#include <algorithm>

namespace llm::jinja {

void AddSpan(size_t begin, size_t end, TextSpans* spans) {
  if (begin == end) return;
  if (!spans->empty() && spans->back().end == begin) {
    spans->back().end = end;
  } else {
    spans->push_back({begin, end});
  }
}

void AddPart(const Text& of, size_t begin, size_t end, size_t offset, TextSpans* spans) {
  if (of.literal == nullptr) return;
  auto span = std::partition_point(of.literal->begin(), of.literal->end(),
                                   [begin](const TextSpan& s) { return s.end <= begin; });
  for (; span != of.literal->end() && span->begin < end; ++span) {
    AddSpan(std::max(span->begin, begin) - begin + offset,
            std::min(span->end, end) - begin + offset, spans);
  }
}

bool MayBeLiteral(const Value& value) {
  if (value.IsText()) return value.text_object().literal != nullptr;
  // What containers hold is not looked at.
  return !value.IsUndefined() && !value.IsNone() && !value.IsNumber() && !value.IsCallable();
}

bool MayBeLiteral(const Value& value, const Arguments& arguments) {
  const auto named = [](const auto& argument) { return MayBeLiteral(argument.second); };
  return MayBeLiteral(value) ||
         std::any_of(arguments.positional.begin(), arguments.positional.end(),
                     [](const Value& argument) { return MayBeLiteral(argument); }) ||
         std::any_of(arguments.named.begin(), arguments.named.end(), named);
}

}  // namespace llm::jinja
