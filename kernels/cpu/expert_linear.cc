// A task is a run of one expert's tiles for all of its rows, so that the second of its row blocks
// finds the weights in the cache.
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

struct ExpertShape {
  int64_t tiles = 0;  // of one expert, all outputs
  int64_t bytes = 0;
};

ExpertShape ShapeOfExpert(const ExpertLinearParams& params) {
  ExpertShape shape;
  for (const ExpertOutput& output : params.outputs) {
    const int64_t tiles = output.outputs / kPackTileRows;
    shape.tiles += tiles;
    shape.bytes += tiles * GetTileShape(output.weight.format, output.weight.cols).tile_bytes;
  }
  return shape;
}

// As for `linear`: tasks of at least 32 KiB of weights, at most what the second-level cache holds,
// and eight a worker. Experts without rows count as if they had some: their tasks end at once.
int64_t CountChunks(const ExpertShape& shape, int64_t num_active, int num_workers) {
  const int64_t wanted = num_workers == 1 ? 1 : CeilDiv<int64_t>(8 * num_workers, num_active);
  const int64_t most = std::max<int64_t>(shape.bytes / (32 << 10), 1);
  const int64_t least = CeilDiv<int64_t>(shape.bytes, 512 << 10);
  return std::clamp<int64_t>(std::max(std::min(wanted, most), least), 1, shape.tiles);
}

void RunChunk(const IsaKernels& isa, const ExpertLinearParams& params, int64_t e, int64_t begin,
              int64_t end) {
  LinearParams linear;
  linear.activations = RowsOfExpert(params, e);
  linear.round_to_bf16 = params.round_to_bf16;
  const int64_t num_rows = linear.activations.rows;
  for (const ExpertOutput& output : params.outputs) {
    const int64_t tiles = output.outputs / kPackTileRows;
    const int64_t first = std::max<int64_t>(begin, 0);
    const int64_t last = std::min(end, tiles);
    begin -= tiles;
    end -= tiles;
    if (first >= last) continue;
    const TileShape shape = GetTileShape(output.weight.format, output.weight.cols);
    const LinearOutput one =
        OutputOfExpert(params, output, e, static_cast<size_t>(tiles * shape.tile_bytes));
    for (int64_t row = 0; row < num_rows; row += kLinearTaskRows) {
      const int64_t count = std::min<int64_t>(kLinearTaskRows, num_rows - row);
      RunLinearTiles(isa, linear, one, {row, count}, {first, last});
    }
  }
}

}  // namespace

absl::Status ExpertLinear(const IsaKernels& isa, const ExpertLinearParams& params,
                          const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckExpertLinear(params));
  const int64_t num_experts = NumExperts(params);
  int64_t num_active = 0;
  for (int64_t e = 0; e < num_experts; ++e) {
    if (RowsOfExpert(params, e).rows > 0) ++num_active;
  }
  if (num_active == 0 || params.outputs.empty()) return absl::OkStatus();
  const ExpertShape shape = ShapeOfExpert(params);
  const int64_t chunks = CountChunks(shape, num_active, NumWorkers(stream));
  RunTasks(stream, num_experts * chunks, [&](int64_t task, int /*worker*/) {
    const int64_t chunk = task % chunks;
    RunChunk(isa, params, task / chunks, shape.tiles * chunk / chunks,
             shape.tiles * (chunk + 1) / chunks);
  });
  return absl::OkStatus();
}

}  // namespace llm::cpu
