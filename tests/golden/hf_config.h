// config.json of a tiny safetensors model as GGUF metadata.
#pragma once

#include <string>

#include "nlohmann/json.hpp"
#include "tests/support/fake_weight_source.h"

namespace llm {

std::string HfArchitecture(const nlohmann::json& config);  // "llama" for a Mistral
void WriteHfConfig(const nlohmann::json& config, FakeMetadata* metadata);

}  // namespace llm
