// Binds the arguments of a call to the parameters of a built-in.
#pragma once

#include <array>
#include <initializer_list>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/value.h"

namespace llm::jinja {

// Arguments in the order of the parameters; absent ones are null. Valid as long as the Arguments.
class Bound {
 public:
  bool Has(size_t i) const { return values_[i] != nullptr; }
  // REQUIRES: Has(i).
  const Value& operator[](size_t i) const { return *values_[i]; }
  Value Or(size_t i, const Value& fallback) const { return Has(i) ? *values_[i] : fallback; }
  bool TruthOr(size_t i, bool fallback) const { return Has(i) ? values_[i]->Truth() : fallback; }

  // INVALID_ARGUMENT when the argument is there and of another kind.
  absl::StatusOr<int64_t> IntOr(size_t i, int64_t fallback) const;
  absl::StatusOr<absl::string_view> TextOr(size_t i, absl::string_view fallback) const;

 private:
  friend absl::StatusOr<Bound> Bind(const Arguments& arguments,
                                    std::initializer_list<absl::string_view> parameters,
                                    size_t required);
  std::array<const Value*, 8> values_{};
};

// INVALID_ARGUMENT for too many, unknown, doubled or missing arguments. REQUIRES: at most 8
// parameters.
absl::StatusOr<Bound> Bind(const Arguments& arguments,
                           std::initializer_list<absl::string_view> parameters,
                           size_t required = 0);

}  // namespace llm::jinja
