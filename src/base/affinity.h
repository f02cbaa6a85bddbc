// Pins our own threads to CPUs; the host's are never touched.
#pragma once

#include <cstdint>
#include <thread>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace llm {

// INVALID_ARGUMENT naming the CPU when there is none of that number, or this process may not use
// it.
absl::Status PinThread(int32_t cpu_id, std::thread* thread);

// The same for each CPU, tried on a thread of its own. RESOURCE_EXHAUSTED: it cannot be created.
absl::Status CheckCpus(absl::Span<const int32_t> cpu_ids);

}  // namespace llm
