// The sixteen values that a 4-bit quant of IQ4_NL and IQ4_XS names: denser near zero, as weights
// are. From the GGUF format (ggml, ggml-common.h).
#pragma once

#include <cstdint>

#include "kernels/quant/device_table.h"

namespace llm {

LLM_DEVICE_TABLE int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

}  // namespace llm
