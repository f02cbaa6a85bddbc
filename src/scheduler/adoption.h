// A prefix whose keys and values come from elsewhere, on its way into blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/cache/block_table.h"
#include "src/sequence/request.h"

namespace llm {

// Fresh until the first Scheduler::Adopt; while it is under way it may not move. Never used twice.
struct Adoption {
  const Request* request = nullptr;  // it gets its salt, variant and session; outlives it, as:
  absl::Span<const int32_t> tokens;  // whole blocks
  uint64_t pin_id = 0;               // 0: its blocks become cached ones

  // The scheduler's.
  enum class Stage { kFresh, kUnderWay, kEnded };
  Stage stage = Stage::kFresh;
  int32_t prefix_node = -1;
  int32_t num_filled = 0;          // tokens that the blocks hold; 0 until all do
  std::vector<BlockTable> tables;  // [groups][blocks that are taken], which it holds
};

}  // namespace llm
