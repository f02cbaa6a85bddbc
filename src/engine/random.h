// Random numbers of the operating system: seeds that nobody gave, and the key of the prefix hashes.
#pragma once

#include <cstdint>

namespace llm {

uint64_t DrawRandom();

}  // namespace llm
