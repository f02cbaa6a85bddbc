// The head is composed in memory, since its checksum comes first; the weights go out as they lie.
#include "src/model/pack_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/atomic_file.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"
#include "src/loader/pack_format.h"
#include "src/model/tensor_list.h"

namespace llm {
namespace {

constexpr size_t kPieceBytes = size_t{8} << 20;  // a few milliseconds of a fast disk
constexpr char kZeros[kPackTensorAlignment] = {};

size_t Padding(const TensorSlot& slot) {
  return RoundUp(slot.size_bytes, size_t{kPackTensorAlignment}) - slot.size_bytes;
}

template <typename T>
void Append(const T& value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

PackTensor IndexEntry(const TensorSlot& slot, const Weights& weights) {
  Xxh64 hash;
  hash.Add(weights.bytes.data() + slot.offset, slot.size_bytes);
  hash.Add(kZeros, Padding(slot));
  return {.offset = slot.offset, .bytes = slot.size_bytes, .checksum = hash.Digest()};
}

// In the order of the source's tensors.
absl::StatusOr<std::vector<PackTensor>> Index(const WeightSource& source, const TensorList& list,
                                              const Weights& weights) {
  std::map<const TensorInfo*, const TensorSlot*> slots;
  for (const TensorSlot& slot : list.slots) slots[slot.tensor] = &slot;
  std::vector<PackTensor> index;
  index.reserve(source.tensors().size());
  for (const TensorInfo& tensor : source.tensors()) {
    const auto slot = slots.find(&tensor);
    if (slot == slots.end()) {
      return absl::InternalError(absl::StrCat("tensor ", tensor.name, ": has no place in a pack"));
    }
    index.push_back(IndexEntry(*slot->second, weights));
  }
  return index;
}

// Everything before the weights.
absl::StatusOr<std::string> Head(const WeightSource& source, const Model& model,
                                 const std::vector<PackTensor>& index, size_t weights_bytes) {
  const GgufHeaderBytes gguf = source.header();
  const std::string id = NumericsId(*model.kernels);
  PackHeader header = {};
  std::memcpy(header.magic, kPackMagic, sizeof(kPackMagic));
  header.version = kPackVersion;
  if (id.size() > kNumericsIdBytes) {
    return absl::InternalError(absl::StrCat("numerics id ", id, ": too long for a pack"));
  }
  std::memcpy(header.numerics_id, id.data(), id.size());
  header.source_bytes = gguf.file_bytes;
  header.gguf_bytes = gguf.bytes.size();
  header.num_tensors = index.size();
  const uint64_t index_offset = RoundUp(sizeof(header) + header.gguf_bytes, uint64_t{8});
  header.weights_offset = RoundUp(index_offset + index.size() * sizeof(PackTensor), kPackAlignment);
  header.weights_bytes = weights_bytes;
  header.file_bytes = header.weights_offset + weights_bytes;

  std::string head;
  head.reserve(static_cast<size_t>(header.weights_offset));
  Append(header, &head);
  head.append(gguf.bytes.data(), gguf.bytes.size());
  head.resize(static_cast<size_t>(index_offset));
  for (const PackTensor& entry : index) Append(entry, &head);
  head.resize(static_cast<size_t>(header.weights_offset));
  header.checksum = Checksum(head.data(), head.size());
  std::memcpy(head.data(), &header, sizeof(header));
  return head;
}

}  // namespace

absl::Status WritePack(const WeightSource& source, const Model& model, const std::string& path,
                       LoadProgress progress) {
  if (source.header().bytes.empty()) {
    return absl::FailedPreconditionError("the model is a pack already");
  }
  Weights unused;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, model.config, model.kernels->packed_bytes, &unused));
  LLM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path));
  LLM_ASSIGN_OR_RETURN(const std::vector<PackTensor> index, Index(source, list, model.weights));
  LLM_ASSIGN_OR_RETURN(const std::string head, Head(source, model, index, list.total_bytes));
  LLM_RETURN_IF_ERROR(file.Write(head.data(), head.size()));
  for (const TensorSlot& slot : list.slots) {
    const std::byte* data = model.weights.bytes.data() + slot.offset;
    for (size_t at = 0; at < slot.size_bytes; at += kPieceBytes) {
      LLM_RETURN_IF_ERROR(file.Write(data + at, std::min(kPieceBytes, slot.size_bytes - at)));
      LLM_RETURN_IF_ERROR(progress(slot.offset + at, list.total_bytes));
    }
    LLM_RETURN_IF_ERROR(file.Write(kZeros, Padding(slot)));
  }
  LLM_RETURN_IF_ERROR(progress(list.total_bytes, list.total_bytes));
  return file.Commit();
}

}  // namespace llm
