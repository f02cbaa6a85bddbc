// Splits a call into tasks: a block of activation rows times a run of tiles that may cross outputs.
#include <algorithm>

#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/linear_chunk.h"
#include "kernels/cpu/linear_kernel.h"
#include "kernels/cpu/weight_tiles.h"
#include "kernels/parallel.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm::cpu {
namespace {

// How the rows and the tiles of all outputs are cut. Results do not depend on it.
struct Split {
  int64_t num_tiles = 0;
  int64_t num_chunks = 0;
  int64_t num_row_blocks = 0;
  int64_t block_rows = 0;  // the last block may have fewer

  int64_t ChunkBegin(int64_t chunk) const { return num_tiles * chunk / num_chunks; }
};

int64_t NumTiles(const LinearOutput& output) {
  return CeilDiv<int64_t>(output.weight.rows, kPackTileRows);
}

Split ChooseSplit(const LinearParams& params, int num_workers) {
  // A task should read at least 32 KiB of weights (about 2 us), beside which taking it from the
  // pool costs little; with many rows at least 32 tiles, beside which gathering the activations
  // does, unless workers would then have nothing to do.
  constexpr int64_t kMinTaskBytes = 32 << 10;
  constexpr int64_t kMinTiles = 32;
  constexpr int64_t kFewTiles = 8;
  constexpr int64_t kLeastTasksPerWorker = 2;
  // Chunks within the second-level cache, or nearly: the row blocks that follow find the weights
  // there.
  constexpr int64_t kMaxTaskBytes = 512 << 10;
  constexpr int64_t kTasksPerWorker =
      8;  // a worker that lost its core for a while holds up the others by 1/8
  constexpr int64_t kRowUnit = 8;  // rows that go through the registers together

  Split split;
  int64_t bytes = 0;
  for (const LinearOutput& output : params.outputs) {
    split.num_tiles += NumTiles(output);
    bytes += NumTiles(output) * GetTileShape(output.weight.format, output.weight.cols).tile_bytes;
  }
  const int64_t rows = params.activations.rows;
  if (split.num_tiles == 0 || rows == 0) return split;
  split.block_rows = RoundUp(CeilDiv(rows, CeilDiv<int64_t>(rows, kLinearTaskRows)), kRowUnit);
  split.num_row_blocks = CeilDiv(rows, split.block_rows);
  const int64_t wanted =
      num_workers == 1 ? 1 : CeilDiv(kTasksPerWorker * num_workers, split.num_row_blocks);
  const int64_t least = split.num_row_blocks == 1 ? 1 : CeilDiv(bytes, kMaxTaskBytes);
  const int64_t shared = CeilDiv(kLeastTasksPerWorker * num_workers, split.num_row_blocks);
  const int64_t most_of_many =
      std::max(split.num_tiles / kMinTiles, std::min(split.num_tiles / kFewTiles, shared));
  const int64_t most = std::max<int64_t>(1, rows > 8 ? most_of_many : bytes / kMinTaskBytes);
  split.num_chunks =
      std::clamp<int64_t>(std::min(std::max(wanted, least), most), 1, split.num_tiles);
  return split;
}

// Of all outputs' tiles in turn; null behind the last.
const std::byte* TileAt(const LinearParams& params, int64_t tile) {
  for (const LinearOutput& output : params.outputs) {
    const int64_t num_tiles = NumTiles(output);
    if (tile < num_tiles) {
      const TileShape shape = GetTileShape(output.weight.format, output.weight.cols);
      return output.weight.data + tile * shape.tile_bytes;
    }
    tile -= num_tiles;
  }
  return nullptr;
}

// Workers that keep in step take every num_workers-th chunk.
const std::byte* NextTile(const LinearParams& params, const Split& split, int64_t chunk,
                          int num_workers) {
  const int64_t next = chunk + num_workers;
  return next < split.num_chunks ? TileAt(params, split.ChunkBegin(next)) : nullptr;
}

void RunTask(const IsaKernels& isa, const LinearParams& params, const Split& split, int num_workers,
             int64_t index) {
  // Row blocks of one chunk follow each other.
  const int64_t row = index % split.num_row_blocks * split.block_rows;
  const int64_t num_rows = std::min(split.block_rows, params.activations.rows - row);
  const int64_t chunk = index / split.num_row_blocks;
  const int64_t chunk_begin = split.ChunkBegin(chunk);
  const int64_t chunk_end = split.ChunkBegin(chunk + 1);
  int64_t output_begin = 0;
  for (const LinearOutput& output : params.outputs) {
    const int64_t num_tiles = NumTiles(output);
    const int64_t begin = std::max<int64_t>(chunk_begin - output_begin, 0);
    const int64_t end = std::min(chunk_end - output_begin, num_tiles);
    output_begin += num_tiles;
    if (begin >= end) continue;
    const std::byte* next = chunk_end > output_begin ? TileAt(params, output_begin)
                                                     : NextTile(params, split, chunk, num_workers);
    RunLinearTiles(isa, params, output, {row, num_rows}, {begin, end, next});
  }
}

}  // namespace

void RunLinearTiles(const IsaKernels& isa, const LinearParams& params, const LinearOutput& output,
                    const RowRange& rows, const TileRange& tiles) {
  const Activations& a = params.activations;
  const int64_t row = rows.begin;
  const PackedWeight& weight = output.weight;
  const bool quantised = a.quants != nullptr && ReadsQuants(weight.format);
  const TileShape shape = GetTileShape(weight.format, weight.cols);
  const int64_t first = tiles.begin * kPackTileRows;
  LinearTask task;
  task.num_rows = static_cast<int>(rows.count);
  task.cols = a.cols;
  if (quantised) {
    task.quants = a.quants + row * a.cols;
    task.scales = a.scales + row * (a.cols / kActivationGroup);
    task.sums = a.sums + row * (a.cols / kActivationSumGroup);
  } else {
    task.values = a.values + row * a.cols;
  }
  task.tiles = reinterpret_cast<const uint8_t*>(weight.data) + tiles.begin * shape.tile_bytes;
  task.tile_bytes = shape.tile_bytes;
  task.scales_offset = shape.scales_offset;
  task.num_outputs = std::min(weight.rows, tiles.end * kPackTileRows) - first;
  task.next_tile = reinterpret_cast<const uint8_t*>(tiles.next);
  task.bias = output.bias != nullptr ? output.bias + first : nullptr;
  task.out = output.out + row * output.out_stride + first;
  task.out_stride = output.out_stride;
  if (params.round_to_bf16 && weight.format == WeightFormat::kBF16) return isa.linear_bf16(task);
  (quantised ? isa.linear_int8 : isa.linear_f32)(weight.format)(task);
}

absl::Status Linear(const IsaKernels& isa, const LinearParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckLinear(params));
  const int num_workers = NumWorkers(stream);
  const Split split = ChooseSplit(params, num_workers);
  RunTasks(stream, split.num_chunks * split.num_row_blocks,
           [&](int64_t index, int /*worker*/) { RunTask(isa, params, split, num_workers, index); });
  return absl::OkStatus();
}

}  // namespace llm::cpu
