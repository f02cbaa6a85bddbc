// One task of the ops that multiply with packed weights.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/isa_kernels.h"
#include "kernels/linear.h"

namespace llm::cpu {

struct RowRange {
  int64_t begin;
  int64_t count;  // at most kLinearTaskRows
};

struct TileRange {
  int64_t begin;
  int64_t end;
  const std::byte* next = nullptr;  // the tile that the thread will read then; null: not known
};

// Some tiles of one output for some rows of params.activations; params.outputs are not looked at.
// REQUIRES: CheckLinear is OK.
void RunLinearTiles(const IsaKernels& isa, const LinearParams& params, const LinearOutput& output,
                    const RowRange& rows, const TileRange& tiles);

}  // namespace llm::cpu
