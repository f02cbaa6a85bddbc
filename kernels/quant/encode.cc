// A scale for each group, then the blocks of the group with it.
#include "kernels/quant/encode.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/quant/all_formats.h"
#include "kernels/quant/fit.h"
#include "src/base/dcheck.h"

namespace llm {
namespace {

constexpr int64_t kBlock = 32;  // of Q4_0, Q4_1 and Q8_0

// round((x - min) / scale) cut to [low, high]; 0, cut likewise, by a scale that is 0 or NaN.
struct Rounder {
  float scale = 0;
  float min = 0;
  int low = 0, high = 0;

  int operator()(float x) const {
    const float quant = (x - min) / scale;
    if (!std::isfinite(quant)) return std::clamp(0, low, high);
    return static_cast<int>(
        std::nearbyint(std::clamp(quant, static_cast<float>(low), static_cast<float>(high))));
  }
};

// Element i in the low nibble of byte i, element i + 16 in the high one.
template <typename Quant>
void PutNibbles(const float* x, const Quant& quant, int zero, uint8_t* quants) {
  for (int i = 0; i < kBlock / 2; ++i) {
    const int low = quant(x[i]) + zero, high = quant(x[i + kBlock / 2]) + zero;
    quants[i] = static_cast<uint8_t>(low | high << 4);
  }
}

void EncodeQ4_0(const WeightGroup& group, Q4_0* blocks) {
  const float scale = FitScale(group, -8, 7);
  const Rounder quant = {.scale = scale, .low = -8, .high = 7};
  for (int64_t i = 0; i < group.size; i += kBlock, ++blocks) {
    blocks->scale = F32ToF16(scale);
    PutNibbles(group.weights + i, quant, 8, blocks->quants);
  }
}

void EncodeQ4_1(const WeightGroup& group, Q4_1* blocks) {
  const AffineFit fit = FitAffine(group);
  const Rounder quant = {.scale = fit.scale, .min = fit.min, .low = 0, .high = 15};
  for (int64_t i = 0; i < group.size; i += kBlock, ++blocks) {
    blocks->scale = F32ToF16(fit.scale);
    blocks->min = F32ToF16(fit.min);
    PutNibbles(group.weights + i, quant, 0, blocks->quants);
  }
}

void EncodeQ8_0(const WeightGroup& group, Q8_0* blocks) {
  const float scale = FitScale(group, -127, 127);
  const Rounder quant = {.scale = scale, .low = -127, .high = 127};
  for (int64_t i = 0; i < group.size; i += kBlock, ++blocks) {
    blocks->scale = F32ToF16(scale);
    for (int64_t k = 0; k < kBlock; ++k) {
      blocks->quants[k] = static_cast<int8_t>(quant(group.weights[i + k]));
    }
  }
}

void EncodeF8(const WeightGroup& group, F8_E4M3* blocks) {
  const float scale = FitE4M3Scale(group);
  for (int64_t i = 0; i < group.size; i += F8_E4M3::kBlockSize, ++blocks) {
    blocks->scale = scale;
    for (int k = 0; k < F8_E4M3::kBlockSize; ++k) {
      const float quotient = group.weights[i + k] / scale;
      blocks->codes[k] = std::isfinite(quotient) ? F32ToF8E4M3(quotient) : 0;
    }
  }
}

template <typename Block>
using EncodeGroup = void (*)(const WeightGroup& group, Block* blocks);

template <typename Block, EncodeGroup<Block> encode>
void EncodeGroups(const float* weights, int64_t count, int64_t group_size, void* dst) {
  LLM_DCHECK(count % Block::kBlockSize == 0);
  const int64_t step = group_size == 0 ? count : group_size;
  std::vector<Block> blocks;  // what dst points to need not be aligned
  auto* out = static_cast<char*>(dst);
  for (int64_t i = 0; i < count; i += step) {
    const int64_t size = std::min(step, count - i);
    blocks.resize(static_cast<size_t>(size / Block::kBlockSize));
    encode({weights + i, size}, blocks.data());
    std::memcpy(out, blocks.data(), blocks.size() * sizeof(Block));
    out += blocks.size() * sizeof(Block);
  }
}

template <typename Element, uint16_t (*convert)(float)>
void EncodeHalves(const float* weights, int64_t count, void* dst) {
  auto* out = static_cast<char*>(dst);
  for (int64_t i = 0; i < count; ++i) {
    const Element element = {convert(weights[i])};
    std::memcpy(out + i * static_cast<int64_t>(sizeof(element)), &element, sizeof(element));
  }
}

}  // namespace

bool CanEncode(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
    case WeightFormat::kQ8_0:
    case WeightFormat::kQ4_0:
    case WeightFormat::kQ4_1:
    case WeightFormat::kF8_E4M3:
      return true;
    default:
      return false;
  }
}

void EncodeRow(const Quantization& to, const float* weights, int64_t count, void* blocks) {
  switch (to.format) {
    case WeightFormat::kF32:
      std::memcpy(blocks, weights, static_cast<size_t>(count) * sizeof(float));
      return;
    case WeightFormat::kF16:
      EncodeHalves<F16, F32ToF16>(weights, count, blocks);
      return;
    case WeightFormat::kBF16:
      EncodeHalves<BF16, F32ToBF16>(weights, count, blocks);
      return;
    case WeightFormat::kQ8_0:
      EncodeGroups<Q8_0, EncodeQ8_0>(weights, count, to.group, blocks);
      return;
    case WeightFormat::kQ4_0:
      EncodeGroups<Q4_0, EncodeQ4_0>(weights, count, to.group, blocks);
      return;
    case WeightFormat::kQ4_1:
      EncodeGroups<Q4_1, EncodeQ4_1>(weights, count, to.group, blocks);
      return;
    case WeightFormat::kF8_E4M3:
      EncodeGroups<F8_E4M3, EncodeF8>(weights, count, to.group, blocks);
      return;
    default:
      LLM_DCHECK(false);
  }
}

}  // namespace llm
