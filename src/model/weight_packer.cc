// Loading is cut into pieces of whole row tiles. Batches of pieces are read and packed in parallel;
// between batches the caller hears of the progress and may stop. Pieces for a device are packed
// into pinned memory, and copied while the next batch is read.
#include "src/model/weight_packer.h"

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "src/base/clock.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/model/nan_scales.h"
#include "src/model/row_scales.h"
#include "src/model/weight_upload.h"

namespace llm {
namespace {

constexpr int64_t kStagingBytes =
    1 << 20;  // large enough for sequential reads, small enough to stay in a cache
constexpr int kPiecesPerThread = 8;  // a batch of 8 MiB per thread: progress every few milliseconds

// Rows of a matrix, or a whole vector.
struct Piece {
  const TensorSlot* slot = nullptr;
  int64_t row_begin = 0;
  int64_t num_rows = 0;
  int64_t row_bytes = 0;
  size_t packed_begin = 0;  // into the slot's packed bytes
  size_t packed_bytes = 0;
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
          .row_bytes = static_cast<int64_t>(slot.tensor->size_bytes),
          .packed_begin = 0,
          .packed_bytes = slot.size_bytes};
}

absl::Status AppendPieces(const TensorSlot& slot, const KernelTable& kernels,
                          std::vector<Piece>* pieces) {
  const PackedWeight& matrix = *slot.matrix;
  const int64_t row_bytes = RowBytes(GetWeightFormat(matrix.format), matrix.cols);
  const int64_t tiles = std::max<int64_t>(1, kStagingBytes / (row_bytes * kPackTileRows));
  size_t packed = 0;
  for (int64_t begin = 0; begin < matrix.rows; begin += tiles * kPackTileRows) {
    const int64_t rows = std::min(matrix.rows - begin, tiles * kPackTileRows);
    LLM_ASSIGN_OR_RETURN(const size_t bytes,
                         kernels.packed_bytes(matrix.format, rows, matrix.cols));
    pieces->push_back({.slot = &slot,
                       .row_begin = begin,
                       .num_rows = rows,
                       .row_bytes = row_bytes,
                       .packed_begin = packed,
                       .packed_bytes = bytes});
    packed += bytes;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Piece>> ListPieces(const TensorList& list, const KernelTable& kernels) {
  std::vector<Piece> pieces;
  for (const TensorSlot& slot : list.slots) {
    if (slot.vector != nullptr) {
      pieces.push_back(WholeVector(slot));
    } else {
      LLM_RETURN_IF_ERROR(AppendPieces(slot, kernels, &pieces));
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

size_t UploadSlotBytes(const std::vector<Piece>& pieces) {
  size_t largest = 0;
  for (const Piece& piece : pieces) largest = std::max(largest, piece.packed_bytes);
  return RoundUp(largest, size_t{64});
}

class Packer {
 public:
  Packer(const WeightSource& source, const WeightsOptions& options, std::byte* storage)
      : source_(source), options_(options), storage_(storage) {}

  absl::Status Run(const std::vector<Piece>& pieces, LoadProgress progress);
  // Of all threads together, until now.
  int64_t read_ns() const { return read_ns_.load(); }
  int64_t repack_ns() const { return repack_ns_.load(); }

 private:
  absl::Status Prepare(const std::vector<Piece>& pieces);
  absl::Status RunBatch(const Piece* pieces, size_t count);
  absl::Status Load(const Piece& piece, std::byte* staging, size_t index);
  // Takes away what a piece has not.
  void ForgetRowScales(const Piece* pieces, size_t count) const;
  absl::Status Pack(const Piece& piece, const std::byte* staging, size_t index) const;

  const WeightSource& source_;
  const WeightsOptions& options_;
  std::byte* const storage_;
  Buffer staging_;  // staging_bytes_ per worker
  size_t staging_bytes_ = 0;
  std::unique_ptr<WeightUpload> upload_;  // null: pieces are packed in their place
  size_t batch_ = 0;
  std::vector<char> row_scales_;  // of each piece of a batch
  const SteadyClock clock_{};
  std::atomic<int64_t> read_ns_{0};
  std::atomic<int64_t> repack_ns_{0};
};

absl::Status Packer::Prepare(const std::vector<Piece>& pieces) {
  const int threads = options_.pool->num_threads();
  staging_bytes_ = StagingBytes(pieces);
  LLM_ASSIGN_OR_RETURN(
      staging_, Buffer::Allocate(options_.allocator, staging_bytes_ * static_cast<size_t>(threads),
                                 "staging memory of the loader"));
  batch_ = static_cast<size_t>(threads) * kPiecesPerThread;
  if (options_.device == nullptr) return absl::OkStatus();
  batch_ = WeightUpload::NumSlots(threads);
  LLM_ASSIGN_OR_RETURN(upload_, WeightUpload::Create(options_.device.get(), options_.allocator,
                                                     UploadSlotBytes(pieces), threads));
  return absl::OkStatus();
}

absl::Status Packer::Run(const std::vector<Piece>& pieces, LoadProgress progress) {
  LLM_RETURN_IF_ERROR(Prepare(pieces));
  uint64_t total_bytes = 0;
  for (const Piece& piece : pieces) {
    total_bytes += static_cast<uint64_t>(piece.num_rows * piece.row_bytes);
  }
  uint64_t done_bytes = 0;
  for (size_t begin = 0; begin < pieces.size(); begin += batch_) {
    const size_t count = std::min(batch_, pieces.size() - begin);
    LLM_RETURN_IF_ERROR(RunBatch(&pieces[begin], count));
    for (size_t i = begin; i < begin + count; ++i) {
      done_bytes += static_cast<uint64_t>(pieces[i].num_rows * pieces[i].row_bytes);
    }
    LLM_RETURN_IF_ERROR(progress(done_bytes, total_bytes));
  }
  return upload_ == nullptr ? absl::OkStatus() : upload_->Finish();
}

absl::Status Packer::RunBatch(const Piece* pieces, size_t count) {
  if (upload_ != nullptr) LLM_RETURN_IF_ERROR(upload_->BeginBatch());
  std::vector<absl::Status> statuses(count);
  row_scales_.assign(count, 0);
  options_.pool->ParallelFor(static_cast<int>(count), [&](int task, int worker) {
    std::byte* staging = staging_.data() + staging_bytes_ * static_cast<size_t>(worker);
    const auto index = static_cast<size_t>(task);
    absl::Status& status = statuses[index];
    try {
      status = Load(pieces[index], staging, index);
    } catch (const std::bad_alloc&) {  // a task must not throw; this status allocates nothing
      status = absl::Status(absl::StatusCode::kResourceExhausted, "");
    }
  });
  for (const absl::Status& status : statuses) LLM_RETURN_IF_ERROR(status);
  ForgetRowScales(pieces, count);
  if (upload_ == nullptr) return absl::OkStatus();
  for (size_t i = 0; i < count; ++i) {
    std::byte* to = storage_ + pieces[i].slot->offset + pieces[i].packed_begin;
    LLM_RETURN_IF_ERROR(upload_->Send(i, to, pieces[i].packed_bytes));
  }
  return absl::OkStatus();
}

void Packer::ForgetRowScales(const Piece* pieces, size_t count) const {
  for (size_t i = 0; i < count; ++i) {
    PackedWeight* matrix = pieces[i].slot->matrix;
    if (matrix != nullptr && row_scales_[i] == 0) matrix->row_scales = false;
  }
}

absl::Status Packer::Load(const Piece& piece, std::byte* staging, size_t index) {
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
  row_scales_[index] = HaveRowScales(tensor.format, cols, piece.num_rows, staging) ? 1 : 0;
  if (status.ok()) status = Pack(piece, staging, index);
  repack_ns_ += clock_.NowNs() - read_ns;
  return status;
}

absl::Status Packer::Pack(const Piece& piece, const std::byte* staging, size_t index) const {
  const TensorInfo& tensor = *piece.slot->tensor;
  std::byte* destination =
      upload_ != nullptr ? upload_->slot(index) : storage_ + piece.slot->offset;
  if (piece.slot->matrix == nullptr) {
    GetWeightFormat(tensor.format)
        .decode(staging, NumElements(tensor), reinterpret_cast<float*>(destination));
    return absl::OkStatus();
  }
  PackRowsParams rows = {.weight = *piece.slot->matrix,
                         .row_begin = piece.row_begin,
                         .num_rows = piece.num_rows,
                         .source = staging,
                         .destination = destination};
  if (upload_ != nullptr) {  // packed tiles lie one after the other, so a piece is a matrix itself
    rows.weight.rows = piece.num_rows;
    rows.row_begin = 0;
  }
  return options_.kernels->pack_rows(rows);
}

}  // namespace

absl::StatusOr<size_t> PackingBytes(const TensorList& list, const KernelTable& kernels,
                                    bool to_device, int num_threads) {
  LLM_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, ListPieces(list, kernels));
  const size_t staging = StagingBytes(pieces) * static_cast<size_t>(num_threads);
  if (!to_device) return staging;
  return staging + WeightUpload::PinnedBytes(UploadSlotBytes(pieces), num_threads);
}

absl::Status PackTensors(const WeightSource& source, const TensorList& list,
                         const WeightsOptions& options, LoadProgress progress, Weights* weights) {
  LLM_ASSIGN_OR_RETURN(const std::vector<Piece> pieces, ListPieces(list, *options.kernels));
  for (const TensorSlot& slot : list.slots) {
    if (slot.matrix != nullptr) slot.matrix->row_scales = true;  // until a piece says otherwise
  }
  Packer packer(source, options, weights->storage.data());
  LLM_RETURN_IF_ERROR(packer.Run(pieces, progress));
  weights->read_ns = packer.read_ns();
  weights->repack_ns = packer.repack_ns();
  return absl::OkStatus();
}

}  // namespace llm
