// Token by token and head by head: norm, rotate, store.
#include <algorithm>
#include <cmath>

#include "kernels/checks.h"
#include "kernels/kv_element.h"
#include "kernels/parallel.h"
#include "kernels/reference/reference.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

void NormHead(float* x, const float* weight, int head_dim, float eps) {
  double squares = 0;
  for (int d = 0; d < head_dim; ++d) squares += double{x[d]} * double{x[d]};
  const double factor = 1 / std::sqrt(squares / head_dim + double{eps});
  for (int d = 0; d < head_dim; ++d) {
    x[d] = static_cast<float>(double{x[d]} * factor * double{weight[d]});
  }
}

void RotateHead(float* x, RopePairs pairs, int rope_dim, const float* cos_sin) {
  for (int i = 0; i < rope_dim / 2; ++i) {
    const bool halves = pairs == RopePairs::kHalves;
    float& a = x[halves ? i : 2 * i];
    float& b = x[halves ? i + rope_dim / 2 : 2 * i + 1];
    const double cos = double{cos_sin[2 * i]};
    const double sin = double{cos_sin[2 * i + 1]};
    const double turned_a = double{a} * cos - double{b} * sin;
    const double turned_b = double{a} * sin + double{b} * cos;
    a = static_cast<float>(turned_a);
    b = static_cast<float>(turned_b);
  }
}

// The scale of `count` values as it is stored.
uint16_t ScaleBits(DType dtype, const float* x, int count) {
  float most = 0, least = 0;
  bool finite = true;
  for (int d = 0; d < count; ++d) {
    finite = finite && std::isfinite(x[d]);
    most = std::fmax(most, x[d]);
    least = std::fmin(least, x[d]);
  }
  if (dtype == DType::kI4) return KvGroupScale(most >= -least ? most : least, finite);
  return KvScale(dtype, std::fmax(most, std::fabs(least)), finite);
}

// Stores one token's head; `element` says where its dimensions lie in `matrix`.
template <typename Element>
void StoreHead(const KvLayout& layout, const float* x, std::byte* matrix, std::byte* scales,
               float constant_scale, int offset, Element element) {
  const int groups = layout.scale_groups();
  const int group_size = layout.head_dim / std::max(groups, 1);
  for (int g = 0; g < std::max(groups, 1); ++g) {
    float scale = constant_scale;
    if (groups > 0) {
      const uint16_t bits = ScaleBits(layout.dtype, x + g * group_size, group_size);
      std::memcpy(scales + 2 * (g * layout.block_size + offset), &bits, sizeof(bits));
      scale = F16ToF32(bits);
    }
    for (int d = g * group_size; d < (g + 1) * group_size; ++d) {
      StoreKvElement(layout.dtype, matrix, element(layout, offset, d), x[d], scale);
    }
  }
}

void WriteToken(const RopeKvWriteParams& p, int64_t token) {
  const KvLayout& layout = p.kv.layout;
  const float* cos_sin = p.cos_sin + token * p.rope_dim;
  for (int h = 0; h < p.num_heads; ++h) {
    float* q = p.q + token * p.q_stride + int64_t{h} * layout.head_dim;
    if (p.q_norm != nullptr) NormHead(q, p.q_norm, layout.head_dim, p.norm_eps);
    RotateHead(q, p.pairs, p.rope_dim, cos_sin);
  }
  const int slot = p.slot_mapping[static_cast<size_t>(token)];
  if (slot == kNoSlot) return;
  const int offset = slot % layout.block_size;
  for (int h = 0; h < layout.num_kv_heads; ++h) {
    float* k = p.k + token * p.kv_stride + int64_t{h} * layout.head_dim;
    if (p.k_norm != nullptr) NormHead(k, p.k_norm, layout.head_dim, p.norm_eps);
    RotateHead(k, p.pairs, p.rope_dim, cos_sin);
    std::byte* head = KvHead(p.kv, slot / layout.block_size, h);
    StoreHead(layout, k, head, head + layout.key_scales_offset(), p.kv.key_scale, offset,
              KeyElement);
    const float* v = p.v + token * p.kv_stride + int64_t{h} * layout.head_dim;
    StoreHead(layout, v, head + layout.values_offset(), head + layout.value_scales_offset(),
              p.kv.value_scale, offset, ValueElement);
  }
}

}  // namespace

absl::Status ReferenceRopeKvWrite(const RopeKvWriteParams& params, const Stream& stream) {
  LLM_RETURN_IF_ERROR(CheckRopeKvWrite(params));
  RunTasks(stream, static_cast<int64_t>(params.slot_mapping.size()),
           [&](int64_t token, int /*worker*/) { WriteToken(params, token); });
  return absl::OkStatus();
}

}  // namespace llm
