// rope_table and rope_kv_write: hand-computed rotations, stored formats to the bit, backends
// against the reference.
#include "gmock/gmock.h"
#include "kernels/kv_element.h"
#include "tests/kernels/kernel_test_util.h"

namespace llm {
namespace {

class RopeTest : public BackendTest {};
INSTANTIATE_TEST_SUITE_P(Backends, RopeTest, testing::ValuesIn(AvailableKernels()), BackendName);

constexpr DType kDTypes[] = {DType::kF32,    DType::kF16, DType::kBF16,
                             DType::kF8E4M3, DType::kI8,  DType::kI4};

TEST_P(RopeTest, TableHoldsCosinesAndSinesTimesMagnitude) {
  const std::vector<int32_t> positions = {0, 3, 1000};
  const std::vector<float> inv_freq = {1.0f, 0.01f};
  Aligned<float> table(12);
  ASSERT_TRUE(kernels()
                  .rope_table({.positions = positions,
                               .inv_freq = inv_freq,
                               .magnitude = 1.5f,
                               .cos_sin = table.data()},
                              {})
                  .ok());
  ExpectNear(table,
             {1.5f, 0, 1.5f, 0, -1.484988745f, 0.211680012f, 1.499325051f, 0.044993249f,
              0.843568614f, 1.240319311f, -1.258607294f, -0.816031666f},
             2e-7);
}

TEST_P(RopeTest, TableEqualsTheReferenceUpToLongContexts) {
  std::vector<int32_t> positions;
  for (int i = 0; i < 40; ++i) positions.push_back(i * i * i * 17);  // up to a million
  std::vector<float> inv_freq;
  for (int i = 0; i < 37; ++i) inv_freq.push_back(std::pow(10000.0f, -static_cast<float>(i) / 37));
  Aligned<float> actual(positions.size() * inv_freq.size() * 2);
  Aligned<float> expected(actual.size());
  const auto pool = MakePool(3);
  ASSERT_TRUE(
      kernels()
          .rope_table({.positions = positions, .inv_freq = inv_freq, .cos_sin = actual.data()},
                      {pool.get()})
          .ok());
  ASSERT_TRUE(
      ReferenceKernels()
          .rope_table({.positions = positions, .inv_freq = inv_freq, .cos_sin = expected.data()},
                      {})
          .ok());
  ExpectNear(actual, expected, 4 * kFloatEpsilon);
}

// A batch of tokens with distinct slots and everything that rope_kv_write touches.
struct Tokens {
  Tokens(const KvLayout& layout_in, int num_tokens, int num_heads_in, int rope_dim_in, float size)
      : layout(layout_in), num_heads(num_heads_in), rope_dim(rope_dim_in) {
    const size_t n = static_cast<size_t>(num_tokens);
    q_stride = num_heads * layout.head_dim + 16;
    kv_stride = layout.num_kv_heads * layout.head_dim + 32;
    q = RandomFloats(n * static_cast<size_t>(q_stride), 1, size);
    k = RandomFloats(n * static_cast<size_t>(kv_stride), 2, size);
    v = RandomFloats(n * static_cast<size_t>(kv_stride), 3, size);
    norm = RandomFloats(static_cast<size_t>(layout.head_dim), 4);
    cos_sin = RandomFloats(n * static_cast<size_t>(rope_dim), 5, 0.5f);
    for (int i = 0; i < num_tokens; ++i) slots.push_back((i * 37 + 5) % (kNumBlocks * 32));
    kv.assign(layout.block_bytes() * kNumBlocks, std::byte{0xff});
  }

  absl::Status Run(const KernelTable& kernels, int begin, int end, bool norms, RopePairs pairs,
                   ThreadPool* pool = nullptr) {
    return kernels.rope_kv_write({.q = q.data() + begin * q_stride,
                                  .k = k.data() + begin * kv_stride,
                                  .v = v.data() + begin * kv_stride,
                                  .q_stride = q_stride,
                                  .kv_stride = kv_stride,
                                  .num_heads = num_heads,
                                  .q_norm = norms ? norm.data() : nullptr,
                                  .k_norm = norms ? norm.data() : nullptr,
                                  .norm_eps = 1e-6f,
                                  .pairs = pairs,
                                  .rope_dim = rope_dim,
                                  .cos_sin = cos_sin.data() + begin * rope_dim,
                                  .slot_mapping = absl::MakeSpan(slots).subspan(
                                      static_cast<size_t>(begin), static_cast<size_t>(end - begin)),
                                  .kv = {layout, kv.data(), kNumBlocks, key_scale, value_scale}},
                                 {pool});
  }

  static constexpr int kNumBlocks = 4;
  KvLayout layout;
  float key_scale = 1, value_scale = 1;  // with layout.constant_scales
  int num_heads;
  int rope_dim;
  int64_t q_stride;
  int64_t kv_stride;
  Aligned<float> q, k, v, norm, cos_sin;
  std::vector<int32_t> slots;
  Aligned<std::byte> kv;
};

KvLayout Layout(DType dtype, int num_kv_heads, int head_dim) {
  return {.dtype = dtype, .block_size = 32, .num_kv_heads = num_kv_heads, .head_dim = head_dim};
}

Tokens OneToken() {
  Tokens tokens(Layout(DType::kF32, 1, 16), 1, 1, 4, 1);
  for (size_t d = 0; d < 16; ++d) tokens.q[d] = tokens.k[d] = static_cast<float>(d + 1);
  tokens.norm.assign(16, 2.0f);
  tokens.cos_sin = {0.8775825619f, 0.4794255386f, 0.9689124217f, 0.2474039593f};
  return tokens;
}

TEST_P(RopeTest, NormsAndTurnsAHandComputedHead) {
  Tokens tokens = OneToken();
  ASSERT_TRUE(tokens.Run(kernels(), 0, 1, true, RopePairs::kHalves).ok());
  const float expected[] = {-0.115971197f, 0.196122882f, 0.643706585f, 0.903963931f, 1.03417538f};
  for (size_t d = 0; d < 5; ++d) EXPECT_NEAR(tokens.q[d], expected[d], 3e-7);
  EXPECT_NEAR(tokens.q[15], 3.309361216f, 6e-7);
  // Slot 5: keys are [head_dim, 16] in the first tile.
  const float* kv = reinterpret_cast<const float*>(tokens.kv.data());
  for (size_t d = 0; d < 5; ++d) EXPECT_NEAR(kv[d * 16 + 5], expected[d], 3e-7);
  for (size_t d = 0; d < 16; ++d) EXPECT_EQ(kv[32 * 16 + 5 * 16 + d], tokens.v[d]);
  EXPECT_TRUE(std::isnan(kv[4])) << "a neighbouring key was touched";
}

TEST_P(RopeTest, TurnsAdjacentPairs) {
  Tokens tokens = OneToken();
  ASSERT_TRUE(tokens.Run(kernels(), 0, 1, true, RopePairs::kAdjacent).ok());
  const float expected[] = {-0.01680918f, 0.462191729f, 0.396527956f, 0.955135748f, 1.03417538f};
  for (size_t d = 0; d < 5; ++d) EXPECT_NEAR(tokens.q[d], expected[d], 3e-7);
}

TEST_P(RopeTest, StoresEveryFormatToTheBit) {
  for (DType dtype : kDTypes) {
    for (float size : {1.0f, 1e-3f, 2e-5f, 3e3f}) {  // 2e-5: subnormal scales
      // Without norm and rotation nothing is computed, so that the stored bits are exact.
      Tokens tokens(Layout(dtype, 3, dtype == DType::kI4 ? 96 : 48), 40, 3, 0, size);
      Tokens expected = tokens;
      ASSERT_TRUE(tokens.Run(kernels(), 0, 40, false, RopePairs::kHalves).ok());
      ASSERT_TRUE(expected.Run(ReferenceKernels(), 0, 40, false, RopePairs::kHalves).ok());
      EXPECT_TRUE(SameBits(tokens.kv, expected.kv)) << DTypeName(dtype) << " " << size;
    }
  }
}

TEST_P(RopeTest, RoundsAHandComputedInt8Head) {
  Tokens tokens(Layout(DType::kI8, 1, 16), 1, 1, 0, 1);
  for (size_t d = 0; d < 16; ++d) tokens.v[d] = static_cast<float>(d) * 0.1f - 0.5f;
  ASSERT_TRUE(tokens.Run(kernels(), 0, 1, false, RopePairs::kHalves).ok());
  const KvLayout& layout = tokens.layout;
  const std::byte* scales = tokens.kv.data() + layout.value_scales_offset();
  const float scale = F16ToF32(LoadAs<uint16_t>(scales + 2 * 5));
  EXPECT_EQ(scale, 0.00787353515625f);  // f16(1 / 127) = 1.0078125 * 2^-7
  std::vector<int> stored;
  for (size_t d = 0; d < 16; ++d) {
    stored.push_back(static_cast<int8_t>(tokens.kv[layout.values_offset() + 5 * 16 + d]));
  }
  EXPECT_THAT(stored, testing::ElementsAre(-64, -51, -38, -25, -13, 0, 13, 25, 38, 51, 64, 76, 89,
                                           102, 114, 127));
}

TEST_P(RopeTest, RoundsHandComputedInt4Groups) {
  Tokens tokens(Layout(DType::kI4, 1, 64), 1, 1, 0, 1);
  // The first group's extreme is -4: scale 0.5; the second's is 7: scale -0.875.
  for (size_t d = 0; d < 32; ++d) tokens.k[d] = tokens.v[d] = static_cast<float>(d) * 0.25f - 4.0f;
  for (size_t d = 32; d < 64; ++d) tokens.k[d] = tokens.v[d] = d == 40 ? 7.0f : -1.75f;
  ASSERT_TRUE(tokens.Run(kernels(), 0, 1, false, RopePairs::kHalves).ok());
  const KvLayout& layout = tokens.layout;
  const auto scale = [&](size_t at) { return F16ToF32(LoadAs<uint16_t>(tokens.kv.data() + at)); };
  for (const size_t scales : {layout.key_scales_offset(), layout.value_scales_offset()}) {
    EXPECT_EQ(scale(scales + 2 * 5), 0.5f);
    EXPECT_EQ(scale(scales + 2 * (32 + 5)), -0.875f);
  }
  const auto code = [&](size_t byte, int shift) {
    return (static_cast<int>(tokens.kv[byte]) >> shift & 0xf) - 8;
  };
  for (size_t i = 0; i < 16; ++i) {
    // Slot 5 of the first tile: a row of 16 bytes for two dimensions. The last, 7.5, saturates.
    const int expected = static_cast<int>(std::nearbyint(static_cast<float>(i) - 8.0f));
    EXPECT_EQ(code(i * 16 + 5, 0), expected);
    EXPECT_EQ(code(i * 16 + 5, 4), std::min(7, static_cast<int>(std::nearbyint(double(i) - 7.5))));
    EXPECT_EQ(code((16 + i) * 16 + 5, 0), i == 4 ? -8 : 2);
    EXPECT_EQ(code((16 + i) * 16 + 5, 4), 2);
    const size_t value = layout.values_offset() + 5 * 32 + i;
    EXPECT_EQ(code(value, 0), static_cast<int>(std::nearbyint(double(i) / 2 - 8)));
    EXPECT_EQ(code(value, 4), std::min(7, static_cast<int>(std::nearbyint(double(i) / 2))));
    EXPECT_EQ(code(value + 16, 0), i == 8 ? -8 : 2);
    EXPECT_EQ(code(value + 16, 4), 2);
  }
}

TEST_P(RopeTest, StoresAGivenScaleNowhereAndDividesByIt) {
  KvLayout layout = Layout(DType::kF8E4M3, 1, 32);
  const size_t with_scales = layout.head_bytes();
  layout.constant_scales = true;
  EXPECT_EQ(layout.head_bytes(), with_scales - 4 * 32);
  Tokens tokens(layout, 1, 1, 0, 1);
  tokens.key_scale = 0.25f;
  tokens.value_scale = 0.5f;
  for (size_t d = 0; d < 32; ++d) tokens.k[d] = tokens.v[d] = static_cast<float>(d);
  tokens.v[31] = 1e6f;
  ASSERT_TRUE(tokens.Run(kernels(), 0, 1, false, RopePairs::kHalves).ok());
  const auto stored = [&](size_t at) { return F8E4M3ToF32(LoadAs<uint8_t>(&tokens.kv[at])); };
  for (size_t d = 0; d < 16; ++d) {
    EXPECT_EQ(stored(d * 16 + 5), F8E4M3ToF32(F32ToF8E4M3(4.0f * static_cast<float>(d))));
    EXPECT_EQ(stored(layout.values_offset() + 5 * 32 + d), 2.0f * static_cast<float>(d));
  }
  EXPECT_EQ(stored(layout.values_offset() + 5 * 32 + 31), 448.0f);
  tokens.value_scale = std::nanf("");
  EXPECT_EQ(tokens.Run(kernels(), 0, 1, false, RopePairs::kHalves).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_P(RopeTest, ZeroTinyHugeAndNonFiniteHeads) {
  for (DType dtype : {DType::kF8E4M3, DType::kI8, DType::kI4}) {
    Tokens tokens(Layout(dtype, 1, 32), 5, 1, 0, 1);
    const auto fill = [&](int token, float x) {
      for (int d = 0; d < 32; ++d) {
        tokens.v[static_cast<size_t>(token * tokens.kv_stride + d)] = d == 0 ? x : x / 2;
      }
    };
    fill(0, 0.0f);
    fill(1, 1e-7f);
    fill(2, 1e30f);
    fill(3, 1.0f);
    tokens.v[static_cast<size_t>(3 * tokens.kv_stride + 31)] = std::nanf("");
    fill(4, 1.0f);
    tokens.v[static_cast<size_t>(4 * tokens.kv_stride + 20)] = -HUGE_VALF;
    ASSERT_TRUE(tokens.Run(kernels(), 0, 5, false, RopePairs::kHalves).ok());
    for (int token = 0; token < 5; ++token) {
      const int slot = tokens.slots[static_cast<size_t>(token)];
      const std::byte* block = KvHead({tokens.layout, tokens.kv.data(), 4}, slot / 32, 0);
      const uint16_t scale =
          LoadAs<uint16_t>(block + tokens.layout.value_scales_offset() + 2 * (slot % 32));
      const int tiny = token == 1 && dtype == DType::kI4 ? 0x8000 : 0x0000;  // 1e-7 / -8
      EXPECT_EQ(scale, token < 2 ? tiny : 0x7e00) << DTypeName(dtype) << " token " << token;
      for (int d = 0; d < 32; ++d) {
        EXPECT_EQ(LoadKvElement(dtype, block + tokens.layout.values_offset(),
                                ValueElement(tokens.layout, slot % 32, d)),
                  0.0f);
      }
    }
  }
}

TEST_P(RopeTest, EqualsTheReference) {
  for (int head_dim : {16, 48, 64, 256}) {
    for (RopePairs pairs : {RopePairs::kHalves, RopePairs::kAdjacent}) {
      for (bool norms : {false, true}) {
        for (int rope_dim : {head_dim, head_dim / 2, 6}) {
          Tokens actual(Layout(DType::kF32, 2, head_dim), 9, 4, rope_dim, 1);
          Tokens expected = actual;
          ASSERT_TRUE(actual.Run(kernels(), 0, 9, norms, pairs).ok());
          ASSERT_TRUE(expected.Run(ReferenceKernels(), 0, 9, norms, pairs).ok());
          // |values| < 32; the norm's sum has relative error < head_dim * eps.
          const double tolerance = 32 * (head_dim / 2 + 8) * kFloatEpsilon;
          ExpectNear(actual.q, expected.q, tolerance);
          const auto stored = [](const Tokens& t) {
            const float* kv = reinterpret_cast<const float*>(t.kv.data());
            Aligned<float> all(kv, kv + t.kv.size() / sizeof(float));
            for (float& x : all) x = std::isnan(x) ? -99.0f : x;
            return all;
          };
          ExpectNear(stored(actual), stored(expected), tolerance);
        }
      }
    }
  }
}

TEST_P(RopeTest, GivesTheSameBitsInAnyBatchAndThreadCount) {
  for (DType dtype : kDTypes) {
    Tokens whole(Layout(dtype, 2, 64), 30, 4, 64, 1);
    Tokens pieces = whole;
    Tokens threaded = whole;
    ASSERT_TRUE(whole.Run(kernels(), 0, 30, true, RopePairs::kHalves).ok());
    for (int begin : {0, 10, 11}) {
      const int end = begin == 0 ? 10 : begin == 10 ? 11 : 30;
      ASSERT_TRUE(pieces.Run(kernels(), begin, end, true, RopePairs::kHalves).ok());
    }
    const auto pool = MakePool(3);
    ASSERT_TRUE(threaded.Run(kernels(), 0, 30, true, RopePairs::kHalves, pool.get()).ok());
    EXPECT_TRUE(SameBits(pieces.q, whole.q));
    EXPECT_TRUE(SameBits(pieces.kv, whole.kv));
    EXPECT_TRUE(SameBits(threaded.q, whole.q));
    EXPECT_TRUE(SameBits(threaded.kv, whole.kv));
  }
}

TEST_P(RopeTest, ATokenWithoutASlotTurnsItsQueriesAndStoresNothing) {
  for (const DType dtype : {DType::kF16, DType::kI8, DType::kI4}) {
    Tokens all(Layout(dtype, 2, 32), 7, 4, 32, 1);
    Tokens some = all;
    some.slots[2] = some.slots[6] = kNoSlot;
    Tokens stored = all;
    ASSERT_TRUE(all.Run(kernels(), 0, 7, true, RopePairs::kHalves).ok());
    ASSERT_TRUE(some.Run(kernels(), 0, 7, true, RopePairs::kHalves).ok());
    EXPECT_TRUE(SameBits(some.q, all.q));
    ASSERT_TRUE(stored.Run(kernels(), 0, 2, true, RopePairs::kHalves).ok());
    ASSERT_TRUE(stored.Run(kernels(), 3, 6, true, RopePairs::kHalves).ok());
    EXPECT_TRUE(SameBits(some.kv, stored.kv)) << DTypeName(dtype);
  }
}

TEST_P(RopeTest, RefusesSlotsOutsideTheLayer) {
  for (int32_t slot : {-1, Tokens::kNumBlocks * 32}) {
    Tokens tokens(Layout(DType::kF16, 1, 16), 2, 1, 0, 1);
    tokens.slots[1] = slot;
    const absl::Status status = tokens.Run(kernels(), 0, 2, false, RopePairs::kHalves);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(status.ToString(), testing::HasSubstr("token 1 has slot"));
  }
}

}  // namespace
}  // namespace llm
