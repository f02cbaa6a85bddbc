// Compiled per ISA. Per head: norm, rotate, store. A key's dimensions are 16 elements apart, so
// keys are converted 16 dimensions at a time into a small array and scattered.
#include "kernels/cpu/rope_kv_write_kernel.h"

#include "kernels/cpu/isa_kernels.h"
#include "kernels/cpu/simd_math.h"
#include "kernels/kv_layout.h"

namespace llm::LLM_CPU_ISA {
namespace {

LLM_SIMD void NormHead(float* x, const float* weight, int head_dim, float eps) {
  F32x16 squares = Zero();
  for (int d = 0; d < head_dim; d += 16) squares = Fma(Load(x + d), Load(x + d), squares);
  const float mean = ReduceAdd(squares) / static_cast<float>(head_dim);
  const F32x16 factor = Set(1.0f / __builtin_sqrtf(mean + eps));
  for (int d = 0; d < head_dim; d += 16) {
    Store(x + d, Mul(Mul(Load(x + d), factor), Load(weight + d)));
  }
}

// Plain loops: the compiler vectorises them, and without contraction that changes no rounding.
LLM_SIMD void RotateHead(float* __restrict x, bool adjacent, int rope_dim,
                         const float* __restrict cos_sin) {
  const int half = rope_dim / 2;
  if (adjacent) {
    for (int i = 0; i < half; ++i) {
      const float a = x[2 * i];
      const float b = x[2 * i + 1];
      x[2 * i] = a * cos_sin[2 * i] - b * cos_sin[2 * i + 1];
      x[2 * i + 1] = a * cos_sin[2 * i + 1] + b * cos_sin[2 * i];
    }
    return;
  }
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[half + i];
    x[i] = a * cos_sin[2 * i] - b * cos_sin[2 * i + 1];
    x[half + i] = a * cos_sin[2 * i + 1] + b * cos_sin[2 * i];
  }
}

// The f16 scale of one head and its value, which is 0 when zeros are to be stored.
struct HeadScale {
  uint16_t bits;
  float divisor;
};

LLM_SIMD HeadScale ScaleOf(DType dtype, const float* x, int head_dim) {
  constexpr uint16_t kNanBits = 0x7e00;
  F32x16 amax = Zero();
  bool finite = true;
  for (int d = 0; d < head_dim; d += 16) {
    const F32x16 v = Load(x + d);
    finite = finite && AllFinite(v);
    amax = Max(Abs(v), amax);
  }
  if (!finite) return {kNanBits, 0};
  uint16_t bits[16];
  float scales[16];
  StoreF16(bits, Set(ReduceMax(amax) / (dtype == DType::kI8 ? 127.0f : 448.0f)));
  Store(scales, LoadF16(bits));
  if (!(scales[0] < __builtin_inff())) return {kNanBits, 0};
  return {bits[0], scales[0]};
}

// Converts 16 dimensions to `dtype`. divisor is 1 for dtypes without scale.
LLM_SIMD void Convert(DType dtype, F32x16 x, float divisor, std::byte* out) {
  switch (dtype) {
    case DType::kF32:
      return Store(reinterpret_cast<float*>(out), x);
    case DType::kF16:
      return StoreF16(reinterpret_cast<uint16_t*>(out), x);
    case DType::kBF16:
      return StoreBF16(reinterpret_cast<uint16_t*>(out), x);
    default:
      break;
  }
  const F32x16 scaled = divisor > 0 ? Div(x, Set(divisor)) : Zero();
  if (dtype == DType::kF8E4M3) return StoreF8E4M3(reinterpret_cast<uint8_t*>(out), scaled);
  StoreI8(reinterpret_cast<int8_t*>(out), Max(Set(-127.0f), Min(Set(127.0f), scaled)));
}

template <typename T>
LLM_SIMD void Scatter(const std::byte* elements, std::byte* tile_dimension) {
  const T* source = reinterpret_cast<const T*>(elements);
  T* destination = reinterpret_cast<T*>(tile_dimension);
  for (int d = 0; d < 16; ++d) destination[d * kKeyTile] = source[d];
}

LLM_SIMD void StoreKey(const RopeKvWriteToken& t, const float* x, float divisor,
                       std::byte* region) {
  const size_t size = DTypeBytes(t.dtype);
  const size_t tile = static_cast<size_t>(t.offset / kKeyTile) * static_cast<size_t>(t.head_dim);
  std::byte* key = region + (tile * kKeyTile + static_cast<size_t>(t.offset % kKeyTile)) * size;
  alignas(64) std::byte elements[16 * sizeof(float)];
  for (int d = 0; d < t.head_dim; d += 16) {
    Convert(t.dtype, Load(x + d), divisor, elements);
    std::byte* destination = key + static_cast<size_t>(d) * kKeyTile * size;
    if (size == 4) Scatter<uint32_t>(elements, destination);
    if (size == 2) Scatter<uint16_t>(elements, destination);
    if (size == 1) Scatter<uint8_t>(elements, destination);
  }
}

LLM_SIMD void StoreValue(const RopeKvWriteToken& t, const float* x, float divisor,
                         std::byte* region) {
  const size_t size = DTypeBytes(t.dtype);
  std::byte* value = region + t.values_offset +
                     static_cast<size_t>(t.offset) * static_cast<size_t>(t.head_dim) * size;
  for (int d = 0; d < t.head_dim; d += 16) {
    Convert(t.dtype, Load(x + d), divisor, value + static_cast<size_t>(d) * size);
  }
}

// Stores the head's scale at `scales` and returns its divisor; nothing for dtypes without scale.
LLM_SIMD float StoreScale(const RopeKvWriteToken& t, const float* x, float constant,
                          std::byte* scales) {
  if (t.dtype != DType::kF8E4M3 && t.dtype != DType::kI8) return 1.0f;
  if (t.constant_scales) return constant;
  const HeadScale scale = ScaleOf(t.dtype, x, t.head_dim);
  reinterpret_cast<uint16_t*>(scales)[t.offset] = scale.bits;
  return scale.divisor;
}

// The scale of a group of int4. Its divisor may be negative.
LLM_SIMD HeadScale GroupScaleOf(const float* x) {
  constexpr uint16_t kNanBits = 0x7e00;
  const F32x16 a = Load(x);
  const F32x16 b = Load(x + 16);
  if (!AllFinite(a) || !AllFinite(b)) return {kNanBits, 0};
  const float most = ReduceMax(Max(Max(a, b), Zero()));
  const float least = -ReduceMax(Max(Max(Sub(Zero(), a), Sub(Zero(), b)), Zero()));
  if (most == 0 && least == 0) return {0, 0};
  uint16_t bits[16];
  float scales[16];
  StoreF16(bits, Set((most >= -least ? most : least) / -8.0f));
  Store(scales, LoadF16(bits));
  const float magnitude = scales[0] < 0 ? -scales[0] : scales[0];
  if (!(magnitude < __builtin_inff())) return {kNanBits, 0};
  return {bits[0], scales[0]};
}

// The codes of a group.
LLM_SIMD void ConvertGroup(const float* x, float divisor, uint8_t* codes) {
  for (int d = 0; d < kKvGroup; d += 16) {
    const F32x16 scaled = divisor != 0 ? Div(Load(x + d), Set(divisor)) : Zero();
    int8_t quants[16];
    StoreI8(quants, Max(Set(-8.0f), Min(Set(7.0f), scaled)));
    for (int i = 0; i < 16; ++i) codes[d + i] = static_cast<uint8_t>(quants[i] + 8);
  }
}

// Keys and values as int4, group by group.
void StoreGroups(const RopeKvWriteToken& t, const float* k, const float* v, std::byte* region) {
  uint8_t* keys = reinterpret_cast<uint8_t*>(region) +
                  t.offset / kKeyTile * (t.head_dim / 2) * kKeyTile + t.offset % kKeyTile;
  uint8_t* values =
      reinterpret_cast<uint8_t*>(region + t.values_offset) + t.offset * (t.head_dim / 2);
  uint16_t* key_scales = reinterpret_cast<uint16_t*>(region + t.key_scales_offset) + t.offset;
  uint16_t* value_scales = reinterpret_cast<uint16_t*>(region + t.value_scales_offset) + t.offset;
  for (int g = 0; g < t.head_dim / kKvGroup; ++g) {
    uint8_t codes[kKvGroup];
    HeadScale scale = GroupScaleOf(k + g * kKvGroup);
    key_scales[g * t.block_size] = scale.bits;
    ConvertGroup(k + g * kKvGroup, scale.divisor, codes);
    for (int i = 0; i < kKvGroup / 2; ++i)
      keys[(g * kKvGroup / 2 + i) * kKeyTile] =
          static_cast<uint8_t>(codes[2 * i] | codes[2 * i + 1] << 4);
    scale = GroupScaleOf(v + g * kKvGroup);
    value_scales[g * t.block_size] = scale.bits;
    ConvertGroup(v + g * kKvGroup, scale.divisor, codes);
    for (int i = 0; i < kKvGroup / 2; ++i)
      values[g * kKvGroup / 2 + i] = static_cast<uint8_t>(codes[i] | codes[i + 16] << 4);
  }
}

}  // namespace

void RopeKvWriteOneToken(const RopeKvWriteToken& t) {
  for (int h = 0; h < t.num_heads; ++h) {
    float* q = t.q + static_cast<int64_t>(h) * t.head_dim;
    if (t.q_norm != nullptr) NormHead(q, t.q_norm, t.head_dim, t.norm_eps);
    RotateHead(q, t.adjacent, t.rope_dim, t.cos_sin);
  }
  for (int h = 0; h < t.num_kv_heads; ++h) {
    float* k = t.k + static_cast<int64_t>(h) * t.head_dim;
    const float* v = t.v + static_cast<int64_t>(h) * t.head_dim;
    std::byte* region = t.block + static_cast<size_t>(h) * t.head_bytes;
    if (t.k_norm != nullptr) NormHead(k, t.k_norm, t.head_dim, t.norm_eps);
    RotateHead(k, t.adjacent, t.rope_dim, t.cos_sin);
    if (t.dtype == DType::kI4) {
      StoreGroups(t, k, v, region);
      continue;
    }
    StoreKey(t, k, StoreScale(t, k, t.key_scale, region + t.key_scales_offset), region);
    StoreValue(t, v, StoreScale(t, v, t.value_scale, region + t.value_scales_offset), region);
  }
}

}  // namespace llm::LLM_CPU_ISA
