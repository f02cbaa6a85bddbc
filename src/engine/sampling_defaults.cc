// One row for each number: what both kinds of file call it, and what a request may have.
#include "src/engine/sampling_defaults.h"

#include <algorithm>
#include <limits>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

struct Row {
  const char* hub;
  const char* gguf;
  std::optional<float> SamplingDefaults::*field;
  double least;  // but for 0, which is off
  double most;
};
constexpr Row kRows[] = {
    {"temperature", "general.sampling.temp", &SamplingDefaults::temperature, 0,
     std::numeric_limits<float>::max()},
    {"top_p", "general.sampling.top_p", &SamplingDefaults::top_p, 0, 1},
    {"min_p", "general.sampling.min_p", &SamplingDefaults::min_p, 0, 1},
    {"repetition_penalty", "general.sampling.penalty_repeat", &SamplingDefaults::repetition_penalty,
     0.01, 100},
};
constexpr char kHubTopK[] = "top_k";
constexpr char kGgufTopK[] = "general.sampling.top_k";

// Nullopt where the file does not have it.
using FindFloat = absl::FunctionRef<absl::StatusOr<std::optional<double>>(const Row& row)>;

absl::Status ReadFloats(FindFloat find, SamplingDefaults* defaults) {
  for (const Row& row : kRows) {
    LLM_ASSIGN_OR_RETURN(const std::optional<double> value, find(row));
    if (!value.has_value()) continue;
    if (*value != 0 && !(*value >= row.least && *value <= row.most)) {
      return absl::InvalidArgumentError(absl::StrCat("key ", row.hub, " (", row.gguf, "): ", *value,
                                                     " is not in ", row.least, " to ", row.most));
    }
    defaults->*row.field = static_cast<float>(*value);
  }
  return absl::OkStatus();
}

// Some files have -1 for a cut that is off.
int32_t TopK(int64_t value) {
  if (value < 0) return 0;
  return static_cast<int32_t>(std::min<int64_t>(value, std::numeric_limits<int32_t>::max()));
}

bool Cuts(const SamplingDefaults& defaults) {
  return defaults.top_k.value_or(0) > 0 || defaults.top_p.has_value() || defaults.min_p.has_value();
}

absl::StatusOr<SamplingDefaults> ReadHub(JsonValue root) {
  SamplingDefaults defaults;
  LLM_RETURN_IF_ERROR(ReadFloats(
      [&](const Row& row) -> absl::StatusOr<std::optional<double>> {
        const JsonValue value = root.Find(row.hub);
        if (!value.exists() || value.is_null()) return std::optional<double>();
        const absl::StatusOr<double> number = value.GetFloat();
        if (!number.ok()) return At(absl::StrCat("key ", row.hub), number.status());
        return std::optional<double>(*number);
      },
      &defaults));
  const JsonValue top_k = root.Find(kHubTopK);
  if (top_k.exists() && !top_k.is_null()) {
    const absl::StatusOr<int64_t> number = top_k.GetInt();
    if (!number.ok()) return At(absl::StrCat("key ", kHubTopK), number.status());
    defaults.top_k = TopK(*number);
  }
  const JsonValue samples = root.Find("do_sample");
  if (!samples.exists() || samples.is_null()) return defaults;
  const absl::StatusOr<bool> flag = samples.GetBool();
  if (!flag.ok()) return At("key do_sample", flag.status());
  if (!*flag) {
    return SamplingDefaults{.temperature = 0.0f,
                            .top_k = {},
                            .top_p = {},
                            .min_p = {},
                            .repetition_penalty = defaults.repetition_penalty};
  }
  if (!defaults.temperature.has_value()) defaults.temperature = 1.0f;
  return defaults;
}

}  // namespace

absl::StatusOr<SamplingDefaults> SamplingDefaultsFromHub(const JsonDocument& generation) {
  absl::StatusOr<SamplingDefaults> defaults = ReadHub(generation.root());
  if (!defaults.ok()) return At("generation_config.json", defaults.status());
  return defaults;
}

absl::StatusOr<SamplingDefaults> SamplingDefaultsFromGguf(const Metadata& metadata) {
  SamplingDefaults defaults;
  LLM_RETURN_IF_ERROR(ReadFloats(
      [&](const Row& row) -> absl::StatusOr<std::optional<double>> {
        if (!metadata.Has(row.gguf)) return std::optional<double>();
        LLM_ASSIGN_OR_RETURN(const double number, metadata.GetFloat(row.gguf));
        return std::optional<double>(number);
      },
      &defaults));
  if (metadata.Has(kGgufTopK)) {
    LLM_ASSIGN_OR_RETURN(const int64_t top_k, metadata.GetInt(kGgufTopK));
    defaults.top_k = TopK(top_k);
  }
  if (!defaults.temperature.has_value() && Cuts(defaults)) defaults.temperature = 1.0f;
  return defaults;
}

void WriteSamplingDefaults(const SamplingDefaults& defaults, GgufWriter* writer) {
  for (const Row& row : kRows) {
    const std::optional<float>& value = defaults.*row.field;
    if (value.has_value()) writer->AddFloat(row.gguf, *value);
  }
  if (defaults.top_k.has_value()) writer->AddInt(kGgufTopK, *defaults.top_k);
}

}  // namespace llm
