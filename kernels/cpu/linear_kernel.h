// One task of `linear`: a block of activation rows times a run of weight tiles of one output.
#pragma once

#include <cstdint>

#include "kernels/quant/weight_format.h"

namespace llm {

// Rows of a task: decoded or unpacked weights are reused for all of them. Bounds the kernels'
// stack.
inline constexpr int kLinearTaskRows = 64;

struct LinearTask {
  // The task's rows of Activations: values for the f32 kernels, the others for the int8 ones.
  const float* values = nullptr;
  const int8_t* quants = nullptr;
  const float* scales = nullptr;
  const int16_t* sums = nullptr;
  int num_rows = 0;  // 1 .. kLinearTaskRows
  int64_t cols = 0;

  const uint8_t* tiles = nullptr;  // layout: weight_tiles.h
  int64_t tile_bytes = 0;
  int64_t scales_offset = 0;
  const uint8_t* next_tile = nullptr;  // what the thread will read after these, probably; or null
  int64_t num_outputs =
      0;  // rows of the weight, from the first tile on; the last tile may be partial

  const float* bias = nullptr;  // [num_outputs] or null
  float* out = nullptr;  // [num_rows, num_outputs], row stride out_stride; between column blocks it
                         // holds the sums
  int64_t out_stride = 0;
};

using LinearTaskFn = void (*)(const LinearTask& task);

}  // namespace llm
