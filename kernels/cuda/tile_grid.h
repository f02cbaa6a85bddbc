// Grids of blocks for tiles of outputs and rows.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace llm {

// Blocks for so many tiles. Those of rows may be more than a grid's y has room for, and go on in z.
inline dim3 TileGrid(unsigned output_tiles, unsigned row_tiles) {
  constexpr unsigned kMostY = 65535;
  const unsigned y = row_tiles < kMostY ? row_tiles : kMostY;
  return dim3(output_tiles, y, y == 0 ? 1 : (row_tiles + y - 1) / y);
}
inline int64_t NumBlocks(const dim3& grid) { return int64_t{grid.x} * grid.y * grid.z; }

}  // namespace llm
