// Pieces of the image are fetched in parallel; between batches of them the caller hears of the
// progress and may stop.
#include "src/model/packed_image.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"
#include "src/loader/pack_format.h"
#include "src/model/weight_upload.h"

namespace llm {
namespace {

constexpr size_t kPieceBytes = size_t{2} << 20;  // beside which taking a task costs nothing
constexpr int kPiecesPerThread = 4;  // a batch of 8 MiB per thread: a millisecond or two
// Building a tokenizer takes some tens of milliseconds, in which another thread reads that much.
constexpr size_t kBatchesBeside = 16;

// Runs task(i) for i in [0, count) on the pool and adds what the threads spent to *spent_ns. The
// first error counts. Tasks may throw bad_alloc.
template <typename Task>
absl::Status RunAll(ThreadPool* pool, size_t count, int64_t* spent_ns, const Task& task) {
  const SteadyClock clock;
  std::atomic<int64_t> total_ns{0};
  std::vector<absl::Status> statuses(count);
  pool->ParallelFor(static_cast<int>(count), [&](int index, int) {
    const int64_t start_ns = clock.NowNs();
    absl::Status& status = statuses[static_cast<size_t>(index)];
    try {
      status = task(static_cast<size_t>(index));
    } catch (const std::bad_alloc&) {  // these statuses allocate nothing
      status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    } catch (...) {
      status = absl::Status(absl::StatusCode::kInternal, "");
    }
    total_ns += clock.NowNs() - start_ns;
  });
  *spent_ns += total_ns.load();
  for (const absl::Status& status : statuses) LLM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

// Brings bytes [at, at + size) of the image in.
using FetchPiece = absl::FunctionRef<absl::Status(size_t at, size_t size)>;

// What `beside` takes is not counted: it is no reading.
absl::Status FetchBatch(const WeightsOptions& options, size_t begin, size_t end, bool with_beside,
                        FetchPiece fetch, int64_t* read_ns) {
  const size_t others = with_beside ? 1 : 0;
  std::atomic<int64_t> beside_ns{0};
  const auto task = [&](size_t index) {
    if (index < others) {
      const SteadyClock clock;
      const int64_t start_ns = clock.NowNs();
      absl::Status status = options.beside();
      beside_ns = clock.NowNs() - start_ns;
      return status;
    }
    const size_t at = begin + (index - others) * kPieceBytes;
    return fetch(at, std::min(kPieceBytes, end - at));
  };
  const absl::Status status =
      RunAll(options.pool, others + CeilDiv(end - begin, kPieceBytes), read_ns, task);
  *read_ns -= beside_ns.load();
  return status;
}

absl::Status FetchAll(const WeightsOptions& options, size_t size, LoadProgress progress,
                      FetchPiece fetch, int64_t* read_ns) {
  const size_t batch =
      kPieceBytes * kPiecesPerThread * static_cast<size_t>(options.pool->num_threads());
  bool with_beside = options.beside != nullptr;
  for (size_t begin = 0; begin < size;) {
    const size_t end = std::min(size, begin + (with_beside ? kBatchesBeside : 1) * batch);
    LLM_RETURN_IF_ERROR(FetchBatch(options, begin, end, with_beside, fetch, read_ns));
    with_beside = false;
    LLM_RETURN_IF_ERROR(progress(end, size));
    begin = end;
  }
  return absl::OkStatus();
}

absl::Status ReadImage(const PackedImage& image, const WeightsOptions& options,
                       LoadProgress progress, Weights* weights) {
  const size_t size = static_cast<size_t>(image.size_bytes);
  LLM_ASSIGN_OR_RETURN(weights->storage, Buffer::Allocate(options.allocator, size, "weights"));
  weights->storage.AdviseHugePages();
  std::byte* to = weights->storage.data();
  weights->bytes = absl::MakeConstSpan(to, size);
  const auto read = [&](size_t at, size_t count) {
    return image.file->Read(image.file_offset + at, count, to + at);
  };
  return FetchAll(options, size, progress, read, &weights->read_ns);
}

// Through pinned memory, of which one half is filled while the other is copied.
absl::Status UploadImage(const PackedImage& image, const WeightsOptions& options,
                         LoadProgress progress, Weights* weights) {
  const size_t size = static_cast<size_t>(image.size_bytes);
  Device* device = options.device.get();
  LLM_ASSIGN_OR_RETURN(weights->storage,
                       Buffer::AllocateOn(device, options.allocator, size, "weights"));
  weights->bytes = absl::MakeConstSpan(weights->storage.data(), size);
  const int threads = options.pool->num_threads();
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<WeightUpload> upload,
                       WeightUpload::Create(device, options.allocator, kPieceBytes, threads));
  const size_t batch = WeightUpload::NumSlots(threads) * kPieceBytes;
  for (size_t begin = 0; begin < size; begin += batch) {
    const size_t end = std::min(size, begin + batch);
    const auto read = [&](size_t at, size_t count) {
      return image.file->Read(image.file_offset + at, count,
                              upload->slot((at - begin) / kPieceBytes));
    };
    const bool with_beside = begin == 0 && options.beside != nullptr;
    LLM_RETURN_IF_ERROR(upload->BeginBatch());
    LLM_RETURN_IF_ERROR(FetchBatch(options, begin, end, with_beside, read, &weights->read_ns));
    for (size_t at = begin; at < end; at += kPieceBytes) {
      LLM_RETURN_IF_ERROR(upload->Send((at - begin) / kPieceBytes, weights->storage.data() + at,
                                       std::min(kPieceBytes, end - at)));
    }
    LLM_RETURN_IF_ERROR(progress(end, size));
  }
  return upload->Finish();
}

absl::Status MapImage(const PackedImage& image, const WeightsOptions& options,
                      LoadProgress progress, Weights* weights) {
  const size_t size = static_cast<size_t>(image.size_bytes);
  LLM_ASSIGN_OR_RETURN(weights->mapping, image.file->Map(image.file_offset, size));
  weights->bytes = absl::MakeConstSpan(weights->mapping.data(), size);
  const auto populate = [&](size_t at, size_t count) {
    if (weights->mapping.Populate(at, count)) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(image.file->name(), ": mapping ", count,
                                            " bytes at offset ", image.file_offset + at,
                                            ": they cannot be read any more"));
  };
  return FetchAll(options, size, progress, populate, &weights->read_ns);
}

absl::StatusOr<uint64_t> ChecksumOfFile(const PackedImage& image, size_t begin, size_t size) {
  std::vector<std::byte> piece(std::min(size, kPieceBytes));
  Xxh64 hash;
  for (size_t done = 0; done < size; done += piece.size()) {
    const size_t count = std::min(piece.size(), size - done);
    LLM_RETURN_IF_ERROR(image.file->Read(image.file_offset + begin + done, count, piece.data()));
    hash.Add(piece.data(), count);
  }
  return hash.Digest();
}

// Weights that went to a device are read from the file once more.
absl::Status CheckSums(const WeightSource& source, absl::Span<const std::byte> bytes,
                       const WeightsOptions& options, int64_t* check_ns) {
  const PackedImage& image = *source.packed();
  return RunAll(options.pool, source.tensors().size(), check_ns, [&](size_t i) -> absl::Status {
    const TensorInfo& tensor = source.tensors()[i];
    const size_t begin = static_cast<size_t>(tensor.file_offset - image.file_offset);
    const size_t size = RoundUp(static_cast<size_t>(tensor.size_bytes), kPackTensorAlignment);
    uint64_t checksum = 0;
    if (options.device == nullptr) {
      checksum = Checksum(bytes.data() + begin, size);
    } else {
      LLM_ASSIGN_OR_RETURN(checksum, ChecksumOfFile(image, begin, size));
    }
    if (checksum == image.checksums[i]) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": its ", size,
                                            " bytes at offset ", tensor.file_offset, " of ",
                                            image.file->name(), " do not match their checksum"));
  });
}

}  // namespace

absl::Status CheckImage(const WeightSource& source, const TensorList& list,
                        const KernelTable& kernels) {
  const PackedImage& image = *source.packed();
  if (const std::string id = NumericsId(kernels); image.numerics_id != id) {
    return absl::FailedPreconditionError(absl::StrCat(
        "pack ", image.file->name(), ": made for kernels ", image.numerics_id,
        ", this model is opened for ", id, ": pack it again, or ask for those kernels"));
  }
  for (const TensorSlot& slot : list.slots) {
    const TensorInfo& tensor = *slot.tensor;
    const uint64_t offset = tensor.file_offset - image.file_offset;
    if (offset == slot.offset && tensor.size_bytes == slot.size_bytes) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("pack ", image.file->name(), ": tensor ", tensor.name, ": ", tensor.size_bytes,
                     " bytes at offset ", offset, " of the weights, expected ", slot.size_bytes,
                     " at ", slot.offset));
  }
  if (image.size_bytes == list.total_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("pack ", image.file->name(), ": ",
                                                 image.size_bytes, " bytes of weights, expected ",
                                                 list.total_bytes));
}

size_t ImageStagingBytes(int num_threads) {
  return WeightUpload::PinnedBytes(kPieceBytes, num_threads);
}

absl::Status LoadImage(const WeightSource& source, const WeightsOptions& options,
                       LoadProgress progress, Weights* weights) {
  const PackedImage& image = *source.packed();
  const bool on_device = options.device != nullptr;
  if (on_device && options.map) {
    return absl::InvalidArgumentError(
        absl::StrCat("map_pack: the weights go to ", options.device->name()));
  }
  LLM_RETURN_IF_ERROR(on_device     ? UploadImage(image, options, progress, weights)
                      : options.map ? MapImage(image, options, progress, weights)
                                    : ReadImage(image, options, progress, weights));
  if (!options.verify) return absl::OkStatus();
  return CheckSums(source, weights->bytes, options, &weights->check_ns);
}

}  // namespace llm
