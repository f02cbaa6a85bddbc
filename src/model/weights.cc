// Loading is cut into pieces of whole row tiles. Batches of pieces are read and packed in parallel;
// between batches the caller hears of the progress and may stop.
#include "src/model/weights.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/clock.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/model/input_order.h"
#include "src/model/nan_scales.h"
#include "src/model/packed_image.h"
#include "src/model/tensor_list.h"

namespace llm {
namespace {

constexpr int64_t kStagingBytes =
    1 << 20;  // large enough for sequential reads, small enough to stay in a cache
constexpr int kPiecesPerThread = 8;  // a batch of 8 MiB per thread: progress every few milliseconds

struct Piece {
  const TensorSlot* slot = nullptr;
  int64_t row_begin = 0;
  int64_t num_rows = 0;
  int64_t row_bytes = 0;
};

int64_t NumElements(const TensorInfo& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

Piece WholeVector(const TensorSlot& slot) {
  return {.slot = &slot,
          .row_begin = 0,
          .num_rows = 1,
          .row_bytes = static_cast<int64_t>(slot.tensor->size_bytes)};
}

void AppendPieces(const TensorSlot& slot, std::vector<Piece>* pieces) {
  const int64_t rows = slot.matrix->rows;
  const int64_t row_bytes = RowBytes(GetWeightFormat(slot.matrix->format), slot.matrix->cols);
  const int64_t tiles = std::max<int64_t>(1, kStagingBytes / (row_bytes * kPackTileRows));
  for (int64_t begin = 0; begin < rows; begin += tiles * kPackTileRows) {
    pieces->push_back({.slot = &slot,
                       .row_begin = begin,
                       .num_rows = std::min(rows - begin, tiles * kPackTileRows),
                       .row_bytes = row_bytes});
  }
}

std::vector<Piece> ListPieces(const TensorList& list) {
  std::vector<Piece> pieces;
  for (const TensorSlot& slot : list.slots) {
    if (slot.vector != nullptr) {
      pieces.push_back(WholeVector(slot));
    } else {
      AppendPieces(slot, &pieces);
    }
  }
  return pieces;
}

// Of one worker: room for the largest piece.
size_t StagingBytes(const std::vector<Piece>& pieces) {
  size_t largest = 0;
  for (const Piece& piece : pieces) {
    largest = std::max(largest, static_cast<size_t>(piece.num_rows * piece.row_bytes));
  }
  return RoundUp(largest, size_t{64});
}

class Packer {
 public:
  Packer(const WeightSource& source, const WeightsOptions& options, std::byte* storage)
      : source_(source), options_(options), storage_(storage) {}

  absl::Status Run(const TensorList& list, LoadProgress progress);
  // Of all threads together, until now.
  int64_t read_ns() const { return read_ns_.load(); }
  int64_t repack_ns() const { return repack_ns_.load(); }

 private:
  absl::Status RunBatch(const Piece* pieces, int count);
  absl::Status Load(const Piece& piece, std::byte* staging);
  absl::Status Pack(const Piece& piece, const std::byte* staging) const;

  const WeightSource& source_;
  const WeightsOptions& options_;
  std::byte* const storage_;
  Buffer staging_;  // staging_bytes_ per worker
  size_t staging_bytes_ = 0;
  const SteadyClock clock_{};
  std::atomic<int64_t> read_ns_{0};
  std::atomic<int64_t> repack_ns_{0};
};

absl::Status Packer::Run(const TensorList& list, LoadProgress progress) {
  const std::vector<Piece> pieces = ListPieces(list);
  staging_bytes_ = StagingBytes(pieces);
  uint64_t total_bytes = 0;
  for (const Piece& piece : pieces) {
    total_bytes += static_cast<uint64_t>(piece.num_rows * piece.row_bytes);
  }
  const int threads = options_.pool->num_threads();
  LLM_ASSIGN_OR_RETURN(
      staging_, Buffer::Allocate(options_.allocator, staging_bytes_ * static_cast<size_t>(threads),
                                 "staging memory of the loader"));
  uint64_t done_bytes = 0;
  const size_t batch = static_cast<size_t>(threads) * kPiecesPerThread;
  for (size_t begin = 0; begin < pieces.size(); begin += batch) {
    const size_t count = std::min(batch, pieces.size() - begin);
    LLM_RETURN_IF_ERROR(RunBatch(&pieces[begin], static_cast<int>(count)));
    for (size_t i = begin; i < begin + count; ++i) {
      done_bytes += static_cast<uint64_t>(pieces[i].num_rows * pieces[i].row_bytes);
    }
    LLM_RETURN_IF_ERROR(progress(done_bytes, total_bytes));
  }
  return absl::OkStatus();
}

absl::Status Packer::RunBatch(const Piece* pieces, int count) {
  std::vector<absl::Status> statuses(static_cast<size_t>(count));
  options_.pool->ParallelFor(count, [&](int task, int worker) {
    std::byte* staging = staging_.data() + staging_bytes_ * static_cast<size_t>(worker);
    absl::Status& status = statuses[static_cast<size_t>(task)];
    try {
      status = Load(pieces[task], staging);
    } catch (const std::bad_alloc&) {  // a task must not throw; this status allocates nothing
      status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    }
  });
  for (const absl::Status& status : statuses) LLM_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::Status Packer::Load(const Piece& piece, std::byte* staging) {
  const TensorInfo& tensor = *piece.slot->tensor;
  const int64_t start_ns = clock_.NowNs();
  LLM_RETURN_IF_ERROR(source_.Read(tensor, static_cast<uint64_t>(piece.row_begin * piece.row_bytes),
                                   static_cast<uint64_t>(piece.num_rows * piece.row_bytes),
                                   staging));
  const int64_t read_ns = clock_.NowNs();
  read_ns_ += read_ns - start_ns;
  const int64_t cols = tensor.shape.back();
  absl::Status status = RefuseNanScales(
      {.tensor = tensor.name,
       .format = tensor.format,
       .cols = cols,
       .first = piece.row_begin,
       .count = piece.num_rows * piece.row_bytes / RowBytes(GetWeightFormat(tensor.format), cols),
       .blocks = staging});
  if (status.ok()) status = Pack(piece, staging);
  repack_ns_ += clock_.NowNs() - read_ns;
  return status;
}

absl::Status Packer::Pack(const Piece& piece, const std::byte* staging) const {
  const TensorInfo& tensor = *piece.slot->tensor;
  std::byte* destination = storage_ + piece.slot->offset;
  if (piece.slot->matrix == nullptr) {
    GetWeightFormat(tensor.format)
        .decode(staging, NumElements(tensor), reinterpret_cast<float*>(destination));
    return absl::OkStatus();
  }
  return options_.kernels->pack_rows({.weight = *piece.slot->matrix,
                                      .row_begin = piece.row_begin,
                                      .num_rows = piece.num_rows,
                                      .source = staging,
                                      .destination = destination});
}

// The bytes that a tensor occupies follow from its shape, which was checked; a source that says
// otherwise is broken.
absl::Status CheckTensorBytes(const TensorSlot& slot) {
  const WeightFormatInfo& info = GetWeightFormat(slot.tensor->format);
  const int64_t cols = slot.tensor->shape.back();
  const int64_t expected = NumElements(*slot.tensor) / cols * RowBytes(info, cols);
  if (slot.tensor->size_bytes == static_cast<uint64_t>(expected)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("tensor ", slot.tensor->name, ": expected ",
                                                 expected, " bytes, file has ",
                                                 slot.tensor->size_bytes));
}

absl::Status CheckSource(const WeightSource& source, const TensorList& list,
                         const KernelTable& kernels) {
  if (source.packed() != nullptr) return CheckImage(source, list, kernels);
  for (const TensorSlot& slot : list.slots) LLM_RETURN_IF_ERROR(CheckTensorBytes(slot));
  return absl::OkStatus();
}

// What lies between tensors counts in a model's identity.
void ClearGaps(const TensorList& list, std::byte* bytes) {
  for (size_t i = 0; i < list.slots.size(); ++i) {
    const size_t end = list.slots[i].offset + list.slots[i].size_bytes;
    const size_t next = i + 1 < list.slots.size() ? list.slots[i + 1].offset : list.total_bytes;
    std::memset(bytes + end, 0, next - end);
  }
}

absl::Status PackWeights(const WeightSource& source, const TensorList& list,
                         const WeightsOptions& options, LoadProgress progress, Weights* weights) {
  if (options.map || options.verify) {
    return absl::InvalidArgumentError(
        absl::StrCat(options.map ? "map_pack" : "verify_pack", ": the model is no pack"));
  }
  LLM_ASSIGN_OR_RETURN(weights->storage,
                       Buffer::Allocate(options.allocator, list.total_bytes, "weights"));
  weights->storage.AdviseHugePages();
  weights->bytes = absl::MakeConstSpan(weights->storage.data(), list.total_bytes);
  ClearGaps(list, weights->storage.data());
  Packer packer(source, options, weights->storage.data());
  LLM_RETURN_IF_ERROR(packer.Run(list, progress));
  weights->read_ns = packer.read_ns();
  weights->repack_ns = packer.repack_ns();
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<size_t> WeightsBytes(const WeightSource& source, const ModelConfig& config,
                                    const KernelTable& kernels) {
  LLM_ASSIGN_OR_RETURN(const LoadBytes bytes, PlanLoad(source, config, kernels, 1));
  return bytes.weights;
}

absl::StatusOr<LoadBytes> PlanLoad(const WeightSource& source, const ModelConfig& config,
                                   const KernelTable& kernels, int num_threads) {
  Weights weights;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, config, kernels.packed_bytes, &weights));
  LLM_RETURN_IF_ERROR(CheckSource(source, list, kernels));
  LoadBytes bytes;
  bytes.weights = list.total_bytes;
  if (source.packed() != nullptr) return bytes;
  bytes.staging = StagingBytes(ListPieces(list)) * static_cast<size_t>(num_threads);
  return bytes;
}

absl::StatusOr<Weights> LoadWeights(const WeightSource& source, const ModelConfig& config,
                                    const WeightsOptions& options, LoadProgress progress) {
  Weights weights;
  LLM_ASSIGN_OR_RETURN(const TensorList list,
                       ListTensors(source, config, options.kernels->packed_bytes, &weights));
  LLM_RETURN_IF_ERROR(CheckSource(source, list, *options.kernels));
  LLM_RETURN_IF_ERROR(source.packed() != nullptr
                          ? LoadImage(source, options, progress, &weights)
                          : PackWeights(source, list, options, progress, &weights));
  for (const TensorSlot& slot : list.slots) {
    const std::byte* data = weights.bytes.data() + slot.offset;
    if (slot.matrix != nullptr) {
      slot.matrix->data = data;
    } else {
      *slot.vector = reinterpret_cast<const float*>(data);
    }
  }
  for (const RowSlice& slice : list.slices) slice.part->data = slice.whole->data + slice.offset;
  if (config.tied_embeddings) weights.head = weights.embedding;
  LLM_RETURN_IF_ERROR(CheckInputOrders(weights, config));
  return weights;
}

}  // namespace llm
