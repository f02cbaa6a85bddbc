// What this process may use of the machine: cores and memory, container limits included.
#pragma once

#include <cstdint>
#include <string>

namespace llm {

// Cores that the affinity mask and the cgroup's quota (versions 1 and 2) allow; at least 1. `root`
// stands before /proc and /sys in tests.
int UsableCores(const std::string& root = "");

// Bytes that can still be allocated before the machine or the cgroup runs out; INT64_MAX when
// nothing tells. `root` as above.
int64_t AvailableMemoryBytes(const std::string& root = "");

}  // namespace llm
