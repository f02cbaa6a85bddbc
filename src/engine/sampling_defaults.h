// How a model's files propose to sample: generation_config.json of a directory, general.sampling.*
// of a GGUF file. Requests take none of it by themselves: what one leaves unset means the same with
// every model.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/json_document.h"
#include "src/loader/weight_source.h"

namespace llm {

// Of SamplingParams; nullopt: the files do not say.
struct SamplingDefaults {
  std::optional<float> temperature;  // 0: greedy; 1 where files sample and say none
  std::optional<int32_t> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> repetition_penalty;
};

// Both: INVALID_ARGUMENT, naming the key, for what no request may have. `generation` is the file;
// where it says that it does not sample, the temperature is 0 and cuts are left out.
absl::StatusOr<SamplingDefaults> SamplingDefaultsFromHub(const JsonDocument& generation);
absl::StatusOr<SamplingDefaults> SamplingDefaultsFromGguf(const Metadata& metadata);

void WriteSamplingDefaults(const SamplingDefaults& defaults, GgufWriter* writer);

}  // namespace llm
