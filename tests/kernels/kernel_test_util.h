// What the kernel tests share: aligned arrays, seeded random numbers, pools, activations, backends.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "kernels/kernel_table.h"
#include "kernels/reference/reference.h"
#include "src/base/thread_pool.h"

namespace llm {

template <typename T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <typename U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}
  T* allocate(size_t n) {
    return static_cast<T*>(std::aligned_alloc(64, (n * sizeof(T) + 63) / 64 * 64));
  }
  void deallocate(T* p, size_t /*n*/) { std::free(p); }
  bool operator==(const AlignedAllocator& /*other*/) const { return true; }
};
template <typename T>
using Aligned = std::vector<T, AlignedAllocator<T>>;

inline Aligned<float> RandomFloats(size_t count, uint32_t seed, float deviation = 1.0f) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0.0f, deviation);
  Aligned<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

// Null for one thread: kernels then run on the caller.
inline std::unique_ptr<ThreadPool> MakePool(int num_threads) {
  if (num_threads == 1) return nullptr;
  return std::move(ThreadPool::Create({.num_threads = num_threads})).value();
}

enum class Forms { kValues, kQuants, kBoth };

// Memory behind Activations, filled with a pattern that a test would notice.
struct ActivationMemory {
  ActivationMemory(int64_t num_rows, int64_t num_cols, Forms forms_in)
      : rows(num_rows),
        cols(num_cols),
        forms(forms_in),
        values(static_cast<size_t>(rows * cols), -77.0f),
        quants(static_cast<size_t>(rows * cols), 77),
        scales(static_cast<size_t>(rows * cols / kActivationGroup), -77.0f),
        sums(static_cast<size_t>(rows * cols / kActivationSumGroup), 7777) {}

  Activations View() {
    Activations view;
    view.rows = rows;
    view.cols = cols;
    if (forms != Forms::kQuants) view.values = values.data();
    if (forms != Forms::kValues) {
      view.quants = quants.data();
      view.scales = scales.data();
      view.sums = sums.data();
    }
    return view;
  }
  const float* Row(int64_t row) const { return values.data() + row * cols; }

  int64_t rows;
  int64_t cols;
  Forms forms;
  Aligned<float> values;
  Aligned<int8_t> quants;
  Aligned<float> scales;
  Aligned<int16_t> sums;
};

// By value bits, so that NaN equals NaN.
template <typename T>
bool SameBits(const Aligned<T>& a, const Aligned<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// The quants, scales and sums are exactly those that kernels/activations.h prescribes for the
// values.
inline void ExpectQuantsOfValues(const ActivationMemory& a) {
  for (size_t g = 0; g < a.scales.size(); ++g) {
    const float* x = a.values.data() + g * 32;
    bool finite = true;
    float amax = 0;
    for (int i = 0; i < 32; ++i) {
      finite = finite && std::isfinite(x[i]);
      amax = std::max(amax, std::fabs(x[i]));
    }
    const float inverse = 127.0f / amax;
    const bool empty = !finite || !std::isfinite(inverse);
    if (finite) {
      EXPECT_EQ(a.scales[g], empty ? 0.0f : amax / 127.0f) << "group " << g;
    } else {
      EXPECT_TRUE(std::isnan(a.scales[g])) << "group " << g << " has scale " << a.scales[g];
    }
    int sums[2] = {0, 0};
    for (int i = 0; i < 32; ++i) {
      const int q = empty ? 0 : static_cast<int>(std::nearbyint(x[i] * inverse));
      ASSERT_EQ(a.quants[g * 32 + static_cast<size_t>(i)], q) << "group " << g << " column " << i;
      sums[i / 16] += q;
    }
    EXPECT_EQ(a.sums[2 * g], sums[0]);
    EXPECT_EQ(a.sums[2 * g + 1], sums[1]);
  }
}

inline void ExpectSame(const ActivationMemory& a, const ActivationMemory& b) {
  EXPECT_TRUE(SameBits(a.values, b.values));
  EXPECT_TRUE(SameBits(a.quants, b.quants));
  EXPECT_TRUE(SameBits(a.scales, b.scales));
  EXPECT_TRUE(SameBits(a.sums, b.sums));
}

inline void ExpectNear(const Aligned<float>& actual, const Aligned<float>& expected,
                       double tolerance) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
  }
}

constexpr double kFloatEpsilon = 0x1p-24;  // relative rounding of one f32 operation

// Tests with this base run once per backend of this machine, the reference included.
class BackendTest : public testing::TestWithParam<const KernelTable*> {
 protected:
  const KernelTable& kernels() const { return *GetParam(); }
};

inline std::string BackendName(const testing::TestParamInfo<const KernelTable*>& info) {
  return info.param->name;
}

}  // namespace llm
