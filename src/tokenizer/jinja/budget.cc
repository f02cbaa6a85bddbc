// The messages say which limit was met and its size, so that a host can raise it.
#include "src/tokenizer/jinja/budget.h"

#include "absl/strings/str_cat.h"

namespace llm::jinja {
namespace {

absl::Status Exhausted(const char* what, uint64_t limit) {
  return absl::ResourceExhaustedError(absl::StrCat("chat template: more than ", limit, " ", what));
}

// Adds without wrapping: a sum beyond 2^64 is beyond any limit.
uint64_t SaturatingAdd(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

}  // namespace

absl::Status Budget::Step(uint64_t count) {
  steps_ = SaturatingAdd(steps_, count);
  return steps_ <= limits_.max_steps ? absl::OkStatus() : Exhausted("steps", limits_.max_steps);
}

absl::Status Budget::ChargeBytes(uint64_t bytes) {
  value_bytes_ = SaturatingAdd(value_bytes_, bytes);
  if (value_bytes_ <= limits_.max_value_bytes) return absl::OkStatus();
  return Exhausted("bytes of values", limits_.max_value_bytes);
}

absl::Status Budget::ChargeOutput(uint64_t bytes) {
  output_bytes_ = SaturatingAdd(output_bytes_, bytes);
  if (output_bytes_ <= limits_.max_output_bytes) return absl::OkStatus();
  return Exhausted("bytes of output", limits_.max_output_bytes);
}

absl::Status DepthGuard::TooDeep() const {
  return Exhausted("levels of nesting while rendering", 2 * uint64_t{budget_.limits_.max_depth});
}

absl::Status CallGuard::status() const {
  if (budget_.calls_ <= budget_.limits_.max_depth) return absl::OkStatus();
  return Exhausted("nested calls", budget_.limits_.max_depth);
}

}  // namespace llm::jinja
