// What weights become, on a command line.
#pragma once

#include <cstdint>
#include <string>

#include "common/flags.h"

namespace tools {

// LLM_WEIGHTS_* and LLM_PRUNE_*; 0: the library's default.
struct WeightFlags {
  uint32_t linear = 0, experts = 0, embedding = 0, head = 0;
  bool requantize = false;
  uint32_t prune = 0;
  float prune_fraction = 0;

  bool Any() const { return linear || experts || embedding || head || prune; }
  bool operator==(const WeightFlags&) const = default;
};

// --linear, --experts, --embedding, --head, --requantize, --prune.
void AddWeightFlags(WeightFlags* flags, FlagTable* table);
void SetWeightOptions(const WeightFlags& flags, llm_model_options* options);

// "int4:32" of LLM_WEIGHTS_INT4_G32; "stored" also of the default.
const char* WeightsName(uint32_t weights);

}  // namespace tools
