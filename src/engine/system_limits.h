// What this process may use of the machine: cores and memory, container limits included.
#pragma once

#include <cstdint>
#include <string>

namespace llm {

// Cores that the affinity mask and the cgroup's quota allow; at least 1.
int UsableCores();

// Bytes that can still be allocated before the machine or the cgroup runs out; INT64_MAX when
// nothing tells. `root` stands before /proc and /sys in tests.
int64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace llm
