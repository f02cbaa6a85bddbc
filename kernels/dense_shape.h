// The largest inputs of linear layers, where a device's library needs memory for them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace llm {

struct DenseShape {
  int64_t max_rows = 0;
  int64_t max_cols = 0;
};

// Bytes of UploadMemory::rounded. More rows than fit there are rounded and multiplied one part
// after the other: 1,170 of 14,336 columns, whose weights are read once more then.
inline size_t RoundedBytes(const DenseShape& shape) {
  constexpr size_t kMost = size_t{32} << 20;
  return std::min(static_cast<size_t>(shape.max_rows * shape.max_cols) * sizeof(uint16_t), kMost);
}

// Bytes of the device's memory that DeviceStream::UseLibrary wants.
using DenseWorkspaceFn = size_t (*)(const DenseShape& shape);

}  // namespace llm
