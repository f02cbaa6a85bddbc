// What this process may use of the machine: cores and memory, container limits included.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace llm {

// Cores that the affinity mask and the cgroup's quota (versions 1 and 2) allow; at least 1. `root`
// stands before /proc and /sys in tests. RESOURCE_EXHAUSTED, here and below: no descriptor was left
// to read them.
absl::StatusOr<int> UsableCores(const std::string& root = "");

// Bytes that can still be allocated before the machine or the cgroup runs out; INT64_MAX when
// nothing tells. `root` as above.
absl::StatusOr<int64_t> AvailableMemoryBytes(const std::string& root = "");

}  // namespace llm
