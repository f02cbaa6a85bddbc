// What lies in a backend's memory, for the host's code.
#pragma once

#include <cstddef>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "src/tensor/device.h"

namespace llm {

// `data` itself in host memory (device null), else a copy that *copy holds.
absl::StatusOr<absl::Span<const float>> OnHost(Device* device, absl::Span<const float> data,
                                               std::vector<float>* copy);

// Calls visit(piece) for all bytes in order, whole or in pieces.
absl::Status VisitOnHost(Device* device, absl::Span<const std::byte> bytes,
                         absl::FunctionRef<void(absl::Span<const std::byte> piece)> visit);

}  // namespace llm
