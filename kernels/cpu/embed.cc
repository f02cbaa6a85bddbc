// Token rows decoded out of the packed table: a few rows a step, so one scalar implementation
// serves every ISA.
#include "kernels/checks.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/weight_tiles.h"
#include "kernels/parallel.h"
#include "src/base/status_macros.h"

namespace llm::cpu {

absl::Status Embed(const EmbedParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  const int64_t cols = params.table.cols;
  RunTasks(stream, static_cast<int64_t>(params.token_ids.size()), [&](int64_t t, int /*worker*/) {
    float* out = params.out + t * cols;
    const int32_t id =
        TokenOf(params.token_ids[static_cast<size_t>(t)], params.pending, params.table.rows);
    DecodePackedRow(params.table, id, out);
    for (int64_t i = 0; i < cols; ++i) out[i] *= params.scale;
  });
  return absl::OkStatus();
}

}  // namespace llm::cpu
