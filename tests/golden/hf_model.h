// A tiny safetensors model of the test data as the GGUF file that a converter would make of it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/support/fake_weight_source.h"

namespace llm {

// `folder` holds config.json and model.safetensors of float tensors.
absl::StatusOr<FakeWeightSource> HfModel(const std::string& folder);

}  // namespace llm
