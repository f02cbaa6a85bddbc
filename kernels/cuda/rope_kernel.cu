// The table: a thread an angle, in double as the reference. The fused op: a warp a head.
#include "kernels/cuda/device_ops.h"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/ptx.cuh"
#include "kernels/cuda/small_floats.cuh"
#include "kernels/cuda/warp_reduce.cuh"

namespace llm {
namespace {

constexpr int kTableThreads = 128;
constexpr int kHeads = 4;  // warps of a block

__global__ void __launch_bounds__(kTableThreads) rope_table_kernel(const RopeTableArgs args) {
  const int64_t i =
      static_cast<int64_t>(blockIdx.x) * kTableThreads + static_cast<int64_t>(threadIdx.x);
  if (i >= args.num_tokens * args.half) return;
  const float angle =
      static_cast<float>(args.positions[i / args.half]) * args.inv_freq[i % args.half];
  const double magnitude = static_cast<double>(args.magnitude);
  args.cos_sin[2 * i] = static_cast<float>(cos(static_cast<double>(angle)) * magnitude);
  args.cos_sin[2 * i + 1] = static_cast<float>(sin(static_cast<double>(angle)) * magnitude);
}

// The head, in shared memory, is read and written by one warp.
__device__ __forceinline__ void NormHead(float* head, const float* weight, int head_dim,
                                         float eps) {
  float squares = 0;
  for (int d = Lane(); d < head_dim; d += kWarp) squares = fmaf(head[d], head[d], squares);
  const float mean = WarpSum(squares) / static_cast<float>(head_dim);
  const float factor = 1.0f / sqrtf(mean + eps);
  for (int d = Lane(); d < head_dim; d += kWarp) head[d] = head[d] * factor * weight[d];
  __syncwarp();
}

__device__ __forceinline__ void RotateHead(float* head, bool adjacent, int rope_dim,
                                           const float* cos_sin) {
  for (int i = Lane(); i < rope_dim / 2; i += kWarp) {
    float& first = head[adjacent ? 2 * i : i];
    float& second = head[adjacent ? 2 * i + 1 : i + rope_dim / 2];
    const float a = first;
    const float b = second;
    const float cosine = cos_sin[2 * i];
    const float sine = cos_sin[2 * i + 1];
    first = fmaf(-b, sine, a * cosine);
    second = fmaf(b, cosine, a * sine);
  }
  __syncwarp();
}

// Of values between `least` and `most`, as kv_element.h; NaN when one is not finite or too large.
__device__ __forceinline__ uint16_t ScaleBits(DType dtype, float most, float least, bool finite) {
  const float extreme = most >= -least ? most : least;
  float scale = fmaxf(most, -least) / (dtype == DType::kI8 ? 127.0f : 448.0f);
  if (dtype == DType::kI4) scale = extreme == 0 ? 0.0f : extreme / -8.0f;
  const uint16_t bits = ToF16(scale);
  return finite && IsFinite(FromF16(bits)) ? bits : uint16_t{0x7e00};
}

__device__ __forceinline__ void StoreElement(DType dtype, std::byte* matrix, int64_t i, float x,
                                             float scale) {
  if (dtype == DType::kF32) {
    reinterpret_cast<float*>(matrix)[i] = x;
  } else if (dtype == DType::kF16) {
    reinterpret_cast<uint16_t*>(matrix)[i] = ToF16(x);
  } else if (dtype == DType::kBF16) {
    reinterpret_cast<uint16_t*>(matrix)[i] = ToBF16(x);
  } else {
    const float scaled = scale > 0 ? x / scale : 0.0f;  // 0 or NaN: nothing to represent
    if (dtype == DType::kF8E4M3) {
      reinterpret_cast<uint8_t*>(matrix)[i] = F32ToF8E4M3(scaled);
    } else {
      const float rounded = fminf(fmaxf(rintf(scaled), -127.0f), 127.0f);
      reinterpret_cast<int8_t*>(matrix)[i] = static_cast<int8_t>(rounded);
    }
  }
}

__device__ __forceinline__ unsigned NibbleOf(float x, float scale) {
  const float scaled = IsFinite(scale) && scale != 0 ? x / scale : 0.0f;
  return static_cast<unsigned>(fminf(fmaxf(rintf(scaled), -8.0f), 7.0f) + 8.0f);
}

// Half of the warp writes a byte each: two dimensions of the group that begins at `first`.
__device__ __forceinline__ void StoreNibbles(const KvArgs& kv, const float* head, std::byte* matrix,
                                             int offset, bool is_key, int first, float scale) {
  if (Lane() >= kKvGroup / 2) return;
  const int low = first + (is_key ? 2 * Lane() : Lane());
  const int high = low + (is_key ? 1 : kKvGroup / 2);
  const int64_t key_byte =
      (int64_t{offset / kKeyTile} * (kv.head_dim / 2) + low / 2) * kKeyTile + offset % kKeyTile;
  const int64_t value_byte = (int64_t{offset} * kv.head_dim + first) / 2 + Lane();
  reinterpret_cast<uint8_t*>(matrix)[is_key ? key_byte : value_byte] =
      static_cast<uint8_t>(NibbleOf(head[low], scale) | NibbleOf(head[high], scale) << 4);
}

// Of dimensions [first, end) of a token's head; written at `scales` too.
__device__ __forceinline__ float FindScale(const KvArgs& kv, const float* head, int first, int end,
                                           uint16_t* scales) {
  float most = 0;
  float least = 0;
  bool finite = true;
  for (int d = first + Lane(); d < end; d += kWarp) {
    finite = finite && IsFinite(head[d]);
    most = fmaxf(most, head[d]);
    least = fminf(least, head[d]);
  }
  const bool all_finite = __all_sync(kAllLanes, finite) != 0;
  const uint16_t bits = ScaleBits(kv.dtype, WarpMax(most), -WarpMax(-least), all_finite);
  if (Lane() == 0) *scales = bits;
  return FromF16(bits);
}

// Keys lie in tiles of 16 tokens, dimension by dimension; values token by token.
__device__ __forceinline__ void StoreHead(const KvArgs& kv, const float* head, std::byte* region,
                                          int offset, bool is_key) {
  const int head_dim = kv.head_dim;
  const int groups = kv.scale_groups > 0 ? kv.scale_groups : 1;
  const int group_size = head_dim / groups;
  std::byte* matrix = is_key ? region : region + kv.values_offset;
  uint16_t* scales = reinterpret_cast<uint16_t*>(
      region + (is_key ? kv.key_scales_offset : kv.value_scales_offset));
  for (int group = 0; group < groups; ++group) {
    const int first = group * group_size;
    float scale = is_key ? kv.key_scale : kv.value_scale;
    if (kv.scale_groups > 0) {
      scale =
          FindScale(kv, head, first, first + group_size, scales + group * kv.block_size + offset);
    }
    if (kv.dtype == DType::kI4) {
      StoreNibbles(kv, head, matrix, offset, is_key, first, scale);
      continue;
    }
    for (int d = first + Lane(); d < first + group_size; d += kWarp) {
      const int64_t key_element =
          (int64_t{offset / kKeyTile} * head_dim + d) * kKeyTile + offset % kKeyTile;
      const int64_t value_element = int64_t{offset} * head_dim + d;
      StoreElement(kv.dtype, matrix, is_key ? key_element : value_element, head[d], scale);
    }
  }
}

// Heads of a token: those of q, then of k, then of v.
__global__ void __launch_bounds__(kHeads* kWarp) rope_kv_write_kernel(const RopeKvWriteArgs args) {
  const int head_dim = args.kv.head_dim;
  const int num_kv_heads = args.kv.num_kv_heads;
  float* head = DynamicShared<float>() + WarpIndex() * head_dim;
  const int64_t token = static_cast<int64_t>(blockIdx.x);
  const int index = static_cast<int>(blockIdx.y) * kHeads + WarpIndex();
  if (index >= args.num_heads + 2 * num_kv_heads) return;  // a whole warp
  const bool is_query = index < args.num_heads;
  const bool is_key = !is_query && index < args.num_heads + num_kv_heads;
  const int kv_head = is_query ? 0 : (index - args.num_heads) % num_kv_heads;
  const float* source =
      is_query ? args.q + token * args.q_stride + int64_t{index} * head_dim
               : (is_key ? args.k : args.v) + token * args.kv_stride + int64_t{kv_head} * head_dim;
  for (int d = Lane(); d < head_dim; d += kWarp) head[d] = source[d];
  __syncwarp();
  if (is_query || is_key) {
    const float* norm = is_query ? args.q_norm : args.k_norm;
    if (norm != nullptr) NormHead(head, norm, head_dim, args.norm_eps);
    RotateHead(head, args.adjacent, args.rope_dim, args.cos_sin + token * args.rope_dim);
  }
  if (is_query) {
    float* q = args.q + token * args.q_stride + int64_t{index} * head_dim;
    for (int d = Lane(); d < head_dim; d += kWarp) q[d] = head[d];
    return;
  }
  const int slot = args.slot_mapping[token];
  if (slot == kNoSlot) return;  // a whole warp
  std::byte* region = args.kv.base + (int64_t{slot / args.kv.block_size} * num_kv_heads + kv_head) *
                                         args.kv.head_bytes;
  StoreHead(args.kv, head, region, slot % args.kv.block_size, is_key);
}

}  // namespace

cudaError_t LaunchRopeTable(const RopeTableArgs& args, LaunchStream stream) {
  const int64_t count = args.num_tokens * args.half;
  return Launch(rope_table_kernel,
                {dim3(static_cast<unsigned>((count + kTableThreads - 1) / kTableThreads)),
                 dim3(kTableThreads)},
                stream, args);
}

cudaError_t LaunchRopeKvWrite(const RopeKvWriteArgs& args, LaunchStream stream) {
  const int num_heads = args.num_heads + 2 * args.kv.num_kv_heads;
  return Launch(
      rope_kv_write_kernel,
      {dim3(static_cast<unsigned>(args.num_tokens),
            static_cast<unsigned>((num_heads + kHeads - 1) / kHeads)),
       dim3(kHeads * kWarp), static_cast<size_t>(kHeads * args.kv.head_dim) * sizeof(float)},
      stream, args);
}

}  // namespace llm
