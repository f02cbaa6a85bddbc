// Copies to ordinary memory are done when the call returns: no waiting is needed.
#include "src/tensor/host_copy.h"

#include <algorithm>

#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kPieceBytes = size_t{4} << 20;

}  // namespace

absl::StatusOr<absl::Span<const float>> OnHost(Device* device, absl::Span<const float> data,
                                               std::vector<float>* copy) {
  if (device == nullptr) return data;
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceStream> stream, device->CreateStream({}));
  copy->resize(data.size());
  LLM_RETURN_IF_ERROR(stream->CopyOut(copy->data(), data.data(), data.size() * sizeof(float)));
  return absl::MakeConstSpan(*copy);
}

absl::Status VisitOnHost(Device* device, absl::Span<const std::byte> bytes,
                         absl::FunctionRef<void(absl::Span<const std::byte> piece)> visit) {
  if (device == nullptr) {
    visit(bytes);
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceStream> stream, device->CreateStream({}));
  std::vector<std::byte> copy(std::min(bytes.size(), kPieceBytes));
  while (!bytes.empty()) {
    const absl::Span<const std::byte> piece = bytes.first(std::min(bytes.size(), copy.size()));
    LLM_RETURN_IF_ERROR(stream->CopyOut(copy.data(), piece.data(), piece.size()));
    visit(absl::MakeConstSpan(copy.data(), piece.size()));
    bytes.remove_prefix(piece.size());
  }
  return absl::OkStatus();
}

}  // namespace llm
