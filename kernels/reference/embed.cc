// Decodes one row of the table per token.
#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {

absl::Status ReferenceEmbed(const EmbedParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckEmbed(params));
  const WeightFormatInfo& info = GetWeightFormat(params.table.format);
  const int64_t cols = params.table.cols;
  RunTasks(stream, static_cast<int64_t>(params.token_ids.size()), [&](int64_t t, int /*worker*/) {
    const int64_t id =
        TokenOf(params.token_ids[static_cast<size_t>(t)], params.pending, params.table.rows);
    float* out = params.out + t * cols;
    info.decode(params.table.data + id * RowBytes(info, cols), cols, out);
    for (int64_t i = 0; i < cols; ++i) out[i] *= params.scale;
  });
  return absl::OkStatus();
}

}  // namespace llm
