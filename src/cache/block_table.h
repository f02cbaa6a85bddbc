// Ids of KV blocks, and the list of blocks that hold one sequence's tokens in one KV group.
#pragma once

#include <cstdint>
#include <vector>

namespace llm {

using BlockId = int32_t;
inline constexpr BlockId kNullBlock =
    -1;  // in a window group: a block that the window has left behind

// Entry i covers tokens [i * block_size, (i + 1) * block_size).
using BlockTable = std::vector<BlockId>;

}  // namespace llm
