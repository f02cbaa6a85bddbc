// The largest inputs of linear layers, where a device's library needs memory for them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llm {

struct DenseShape {
  int64_t max_rows = 0;
  int64_t max_cols = 0;
};

// Bytes of the device's memory that DeviceStream::UseLibrary wants.
using DenseWorkspaceFn = size_t (*)(const DenseShape& shape);

}  // namespace llm
