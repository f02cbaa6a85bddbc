// The angle is rounded to f32, as in the models' training code; its sine and cosine are exact.
#include <cmath>

#include "kernels/checks.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {

absl::Status ReferenceRopeTable(const RopeTableParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRopeTable(params));
  const size_t half = params.inv_freq.size();
  RunTasks(stream, static_cast<int64_t>(params.positions.size()), [&](int64_t t, int /*worker*/) {
    const float position = static_cast<float>(params.positions[static_cast<size_t>(t)]);
    float* out = params.cos_sin + t * 2 * static_cast<int64_t>(half);
    for (size_t i = 0; i < half; ++i) {
      const double angle = double{position * params.inv_freq[i]};
      out[2 * i] = static_cast<float>(std::cos(angle) * double{params.magnitude});
      out[2 * i + 1] = static_cast<float>(std::sin(angle) * double{params.magnitude});
    }
  });
  return absl::OkStatus();
}

}  // namespace llm
