// Constants of the program, which device code may read as it reads __constant__ memory.
#pragma once

#include <cstddef>

namespace llm::cuda_on_cpu {

// Whether the range lies in a segment of a loaded file that cannot be written.
bool IsReadOnlyData(const void* address, size_t bytes);

}  // namespace llm::cuda_on_cpu
