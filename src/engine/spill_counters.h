// What the second tier is asked for, and what it counts.
#pragma once

#include <cstdint>
#include <string>

namespace llm {

struct SpillOptions {
  std::string folder;      // empty: no second tier
  uint64_t max_bytes = 0;  // of the file
};

// Totals since the start, but for the last.
struct SpillCounters {
  uint64_t spilled_blocks_total = 0;
  uint64_t returned_blocks_total = 0;
  uint64_t written_bytes_total = 0;
  uint64_t read_bytes_total = 0;
  uint64_t failed_blocks_total = 0;  // damaged, or not readable
  uint64_t blocks_current = 0;
};

}  // namespace llm
