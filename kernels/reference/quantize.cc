// One group after the other.
#include "kernels/reference/quantize.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace llm {
namespace {

struct GroupScale {
  float scale;    // x = q * scale
  float inverse;  // q = round(x * inverse); 0 when nothing is to be represented
};

GroupScale ScaleOf(const float* x) {
  float amax = 0;
  for (int i = 0; i < kActivationGroup; ++i) {
    if (!std::isfinite(x[i])) return {std::numeric_limits<float>::quiet_NaN(), 0};
    amax = std::fmax(amax, std::fabs(x[i]));
  }
  const float inverse = 127.0f / amax;
  if (!std::isfinite(inverse)) return {0, 0};
  return {amax / 127.0f, inverse};
}

void QuantizeGroup(const float* x, int8_t* quants, float* scale, int16_t* sums) {
  const GroupScale group = ScaleOf(x);
  *scale = group.scale;
  for (int i = 0; i < kActivationGroup; ++i) {
    const float q = group.inverse == 0 ? 0 : std::nearbyint(x[i] * group.inverse);
    quants[i] = static_cast<int8_t>(q);
  }
  for (int g = 0; g < kActivationGroup / kActivationSumGroup; ++g) {
    int sum = 0;
    for (int i = 0; i < kActivationSumGroup; ++i) sum += quants[g * kActivationSumGroup + i];
    sums[g] = static_cast<int16_t>(sum);
  }
}

}  // namespace

void ReferenceStore(const Activations& output, int64_t row, int64_t col, const float* x,
                    int64_t count) {
  const int64_t begin = row * output.cols + col;
  if (output.values != nullptr) {
    std::memmove(output.values + begin, x, static_cast<size_t>(count) * sizeof(float));
  }
  if (output.quants == nullptr) return;
  for (int64_t i = 0; i < count; i += kActivationGroup) {
    QuantizeGroup(x + i, output.quants + begin + i, output.scales + (begin + i) / kActivationGroup,
                  output.sums + (begin + i) / kActivationSumGroup);
  }
}

}  // namespace llm
