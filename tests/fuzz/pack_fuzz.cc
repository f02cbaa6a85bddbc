// Any bytes as a pack: loaded, or refused with a message.
#include <cstring>
#include <string>

#include "kernels/kernel_table.h"
#include "src/base/math.h"
#include "src/base/xxh64.h"
#include "src/loader/pack_format.h"
#include "src/loader/pack_reader.h"
#include "src/model/model.h"
#include "tests/fuzz/file_fuzz.h"

namespace llm {
namespace {

constexpr uint64_t kMaxWeightsBytes = 1 << 18;

// The bytes are what comes before the weights: padding and zeros for those follow.
void Complete(std::string* bytes) {
  PackHeader header;
  if (bytes->size() < sizeof(header)) return;
  std::memcpy(&header, bytes->data(), sizeof(header));
  header.weights_offset = RoundUp<uint64_t>(bytes->size(), kPackAlignment);
  header.weights_bytes =
      RoundUp<uint64_t>(header.weights_bytes % kMaxWeightsBytes, kPackTensorAlignment);
  header.file_bytes = header.weights_offset + header.weights_bytes;
  header.checksum = 0;
  bytes->resize(header.weights_offset);
  std::memcpy(bytes->data(), &header, sizeof(header));
  header.checksum = Checksum(bytes->data(), bytes->size());
  std::memcpy(bytes->data(), &header, sizeof(header));
  bytes->resize(header.file_bytes);
}

std::string Load(const WeightSource& source, bool verify) {
  const absl::StatusOr<const KernelTable*> kernels = FindKernels("reference");
  const auto pool = ThreadPool::Create({.num_threads = 1});
  if (!kernels.ok() || !pool.ok()) return "";
  Allocator allocator;
  const WeightsOptions options = {
      .kernels = *kernels, .pool = pool->get(), .allocator = &allocator, .verify = verify};
  const auto model = LoadModel(source, options);
  if (model.ok()) return "";
  return model.status().message().empty() ? "the load is refused without a message" : "";
}

std::string Walk(const std::string& bytes) {
  const auto source =
      OpenWeightSource(MemoryModelFile(bytes.data(), bytes.size(), "memory"), LoaderLimits());
  if (!source.ok()) return source.status().message().empty() ? "refused without a message" : "";
  const PackedImage* image = (*source)->packed();
  if (image == nullptr) return "";
  if (image->checksums.size() != (*source)->tensors().size()) return "an index of another length";
  for (const TensorInfo& tensor : (*source)->tensors()) {
    if (tensor.file_offset < image->file_offset || tensor.file_offset > bytes.size() ||
        tensor.size_bytes > bytes.size() - tensor.file_offset) {
      return "a tensor lies outside";
    }
  }
  for (const bool verify : {false, true}) {
    if (std::string fault = Load(**source, verify); !fault.empty()) return fault;
  }
  return "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return llm::FuzzFile(data, size, "pack_fuzz", llm::Complete, llm::Walk);
}
