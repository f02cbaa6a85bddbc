// Python's rules for built-in signatures: positional first, then by name.
#include "src/tokenizer/jinja/arguments.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace llm::jinja {

absl::StatusOr<int64_t> Bound::IntOr(size_t i, int64_t fallback) const {
  if (!Has(i)) return fallback;
  if (values_[i]->IsIntegral()) return values_[i]->integer();
  return absl::InvalidArgumentError(
      absl::StrCat("argument ", i + 1, " must be an integer, not ", values_[i]->TypeName()));
}

absl::StatusOr<absl::string_view> Bound::TextOr(size_t i, absl::string_view fallback) const {
  if (!Has(i)) return fallback;
  if (values_[i]->IsText()) return values_[i]->text();
  return absl::InvalidArgumentError(
      absl::StrCat("argument ", i + 1, " must be a string, not ", values_[i]->TypeName()));
}

absl::StatusOr<Bound> Bind(const Arguments& arguments,
                           std::initializer_list<absl::string_view> parameters, size_t required) {
  Bound bound;
  if (arguments.positional.size() > parameters.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "takes at most ", parameters.size(), " arguments, got ", arguments.positional.size()));
  }
  for (size_t i = 0; i < arguments.positional.size(); ++i) {
    bound.values_[i] = &arguments.positional[i];
  }
  for (const auto& [name, value] : arguments.named) {
    const auto* const found = std::find(parameters.begin(), parameters.end(), name);
    const auto i = static_cast<size_t>(found - parameters.begin());
    if (found == parameters.end() || bound.values_[i] != nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("unexpected argument '", name, "'"));
    }
    bound.values_[i] = &value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (bound.values_[i] == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("argument '", *(parameters.begin() + i), "' is missing"));
    }
  }
  return bound;
}

}  // namespace llm::jinja
