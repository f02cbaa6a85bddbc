// The block structs of block_formats.def, and the one that a format names.
#pragma once

#include <cuda_runtime.h>

#include "kernels/cuda/device_ops.h"
#include "kernels/quant/bf16_24.h"
#include "kernels/quant/f8_e4m3.h"
#include "kernels/quant/iq1_m.h"
#include "kernels/quant/iq1_s.h"
#include "kernels/quant/iq2_s.h"
#include "kernels/quant/iq2_xs.h"
#include "kernels/quant/iq2_xxs.h"
#include "kernels/quant/iq3_s.h"
#include "kernels/quant/iq3_xxs.h"
#include "kernels/quant/iq4_nl.h"
#include "kernels/quant/iq4_xs.h"
#include "kernels/quant/mxfp4.h"
#include "kernels/quant/mxfp8.h"
#include "kernels/quant/nvfp4.h"
#include "kernels/quant/nvfp4_f32.h"
#include "kernels/quant/q1_0.h"
#include "kernels/quant/q2_k.h"
#include "kernels/quant/q3_k.h"
#include "kernels/quant/q4_0.h"
#include "kernels/quant/q4_1.h"
#include "kernels/quant/q4_k.h"
#include "kernels/quant/q4_z.h"
#include "kernels/quant/q5_0.h"
#include "kernels/quant/q5_1.h"
#include "kernels/quant/q5_k.h"
#include "kernels/quant/q6_k.h"
#include "kernels/quant/q8_0.h"
#include "kernels/quant/q8_f32.h"
#include "kernels/quant/tq1_0.h"
#include "kernels/quant/tq2_0.h"

namespace llm {

// Calls visit(Block()) with the format's block.
template <typename Visit>
cudaError_t VisitBlock(BlockFormat format, const Visit& visit) {
  switch (format) {
#define LLM_BLOCK_FORMAT(name, header) \
  case BlockFormat::k##name:           \
    return visit(name{});
#include "kernels/cuda/block_formats.def"
#undef LLM_BLOCK_FORMAT
  }
  return cudaErrorInvalidValue;
}

}  // namespace llm
