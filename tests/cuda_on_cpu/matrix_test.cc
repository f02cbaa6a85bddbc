// ldmatrix and mma.m16n8k16 hold their elements where the PTX ISA says ("Matrix fragments for
// mma.m16n8k16 with floating point type"), and products of bytes are exact.
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/cuda_on_cpu/matrix_kernels.h"
#include "tests/cuda_on_cpu/warp.h"

namespace llm {
namespace {

template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values)
      : floats_((values.size() * sizeof(T) + 3) / 4) {
    EXPECT_EQ(cudaMemcpyAsync(get(), values.data(), values.size() * sizeof(T),
                              cudaMemcpyHostToDevice, nullptr),
              cudaSuccess);
    EXPECT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  }
  T* get() const { return reinterpret_cast<T*>(floats_.get()); }
  std::vector<T> Read(size_t size) const {
    std::vector<T> values(size);
    EXPECT_EQ(
        cudaMemcpyAsync(values.data(), get(), size * sizeof(T), cudaMemcpyDeviceToHost, nullptr),
        cudaSuccess);
    return values;
  }

 private:
  DeviceFloats floats_;
};

struct Result {
  std::vector<uint32_t> fragments;
  std::vector<float> d;
};

class MatrixTest : public GpuTest {
 protected:
  Result Run(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b,
             const std::vector<float>& c, bool bf16) {
    const DeviceArray<uint16_t> device_a(a);
    const DeviceArray<uint16_t> device_b(b);
    const DeviceArray<uint32_t> fragments(std::vector<uint32_t>(32 * 6));
    const DeviceArray<float> d(c);
    ExpectNoFault(
        LaunchMatrix({device_a.get(), device_b.get(), fragments.get(), d.get()}, bf16, nullptr));
    return {fragments.Read(32 * 6), d.Read(32 * 4)};
  }
  ~MatrixTest() override { cuda_on_cpu::set_mma_order(cuda_on_cpu::MmaOrder::kAscending); }
};

std::vector<uint16_t> Numbered(size_t count) {
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint16_t>(i);
  return values;
}

// With groupID = lane / 4 and t = lane % 4. A: element i of {a0..a7} is in row groupID (+ 8 for i
// of 2, 3, 6, 7) and column 2 t + i % 2 (+ 8 from a4 on). B: row 2 t + i % 2 (+ 8 from b2 on),
// column groupID.
TEST_F(MatrixTest, LoadedFragmentsAreThoseThatMmaTakes) {
  const Result result = Run(Numbered(256), Numbered(128), std::vector<float>(128), true);
  for (size_t lane = 0; lane < 32; ++lane) {
    const size_t group = lane / 4;
    const size_t t = lane % 4;
    for (size_t i = 0; i < 8; ++i) {
      const size_t row = group + (i / 2 % 2 == 1 ? 8 : 0);
      const size_t column = 2 * t + i % 2 + (i >= 4 ? 8 : 0);
      EXPECT_EQ(result.fragments[lane * 6 + i / 2] >> (16 * (i % 2)) & 0xffff, row * 16 + column);
    }
    for (size_t i = 0; i < 4; ++i) {
      const size_t k = 2 * t + i % 2 + (i >= 2 ? 8 : 0);
      EXPECT_EQ(result.fragments[lane * 6 + 4 + i / 2] >> (16 * (i % 2)) & 0xffff, group * 16 + k);
    }
  }
}

// C and D: {c0..c3} in row groupID (+ 8 from c2 on), column 2 t + i % 2. Small integers, so that
// every order of additions is exact.
TEST_F(MatrixTest, MultipliesAndAdds) {
  std::mt19937 random(3);
  for (const bool bf16 : {true, false}) {
    std::vector<float> a(256), b(128), c(128);
    for (float& x : a) x = static_cast<float>(random() % 17) - 8;
    for (float& x : b) x = static_cast<float>(random() % 17) - 8;
    for (float& x : c) x = static_cast<float>(random() % 100);
    const auto bits = [&](const std::vector<float>& values) {
      std::vector<uint16_t> result;
      for (const float x : values) result.push_back(bf16 ? F32ToBF16(x) : F32ToF16(x));
      return result;
    };
    for (const auto order : {cuda_on_cpu::MmaOrder::kAscending, cuda_on_cpu::MmaOrder::kPairs}) {
      cuda_on_cpu::set_mma_order(order);
      const Result result = Run(bits(a), bits(b), c, bf16);
      for (size_t lane = 0; lane < 32; ++lane) {
        for (size_t i = 0; i < 4; ++i) {
          const size_t row = lane / 4 + (i >= 2 ? 8 : 0);
          const size_t column = 2 * (lane % 4) + i % 2;
          float expected = c[lane * 4 + i];
          for (size_t k = 0; k < 16; ++k) expected += a[row * 16 + k] * b[column * 16 + k];
          EXPECT_EQ(result.d[lane * 4 + i], expected) << "lane " << lane << " element " << i;
        }
      }
    }
  }
}

// d as above. Codes of small integers and of subnormals (multiples of 2^-9 up to 7), whose sums are
// exact in every order; then one row of the largest, 448, and a NaN that stays in its row.
TEST_F(MatrixTest, MultipliesE4M3) {
  constexpr size_t kDepth = 32;
  std::mt19937 random(7);
  const auto codes = [&](size_t count, float unit) {
    std::vector<uint8_t> result(count);
    for (uint8_t& code : result) {
      code = F32ToF8E4M3(unit * (static_cast<float>(random() % 15) - 7));
    }
    return result;
  };
  std::vector<uint8_t> a = codes(16 * kDepth, 0x1p-9f);
  const std::vector<uint8_t> b = codes(8 * kDepth, 1);
  std::fill_n(a.begin() + 3 * kDepth, kDepth, uint8_t{0x7e});
  a[5 * kDepth + 17] = 0xff;
  std::vector<float> c(128);
  for (float& x : c) x = static_cast<float>(random() % 100);
  const auto words = [](const std::vector<uint8_t>& bytes) {
    std::vector<uint32_t> result(bytes.size() / 4);
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  };
  for (const auto order : {cuda_on_cpu::MmaOrder::kAscending, cuda_on_cpu::MmaOrder::kPairs}) {
    cuda_on_cpu::set_mma_order(order);
    const DeviceArray<uint32_t> device_a(words(a));
    const DeviceArray<uint32_t> device_b(words(b));
    const DeviceArray<float> d(c);
    ExpectNoFault(LaunchE4M3Matrix({device_a.get(), device_b.get(), d.get()}, nullptr));
    const std::vector<float> actual = d.Read(128);
    for (size_t i = 0; i < 128; ++i) {
      const size_t row = i / 16 + (i % 4 >= 2 ? 8 : 0);
      const size_t column = 2 * (i / 4 % 4) + i % 2;
      double expected = double{c[i]};
      for (size_t k = 0; k < kDepth; ++k) {
        expected +=
            double{F8E4M3ToF32(a[row * kDepth + k])} * double{F8E4M3ToF32(b[column * kDepth + k])};
      }
      if (row == 5) {
        EXPECT_TRUE(std::isnan(actual[i])) << i;
      } else {
        EXPECT_EQ(actual[i], static_cast<float>(expected)) << "element " << i;
      }
    }
  }
}

// Extreme bytes too; d as above. Sums wrap around where they do not fit.
TEST_F(MatrixTest, MultipliesBytesExactly) {
  std::mt19937 random(5);
  for (const size_t depth : {16, 32}) {
    std::vector<int8_t> a(16 * depth), b(8 * depth);
    for (int8_t& x : a) x = static_cast<int8_t>(random());
    for (int8_t& x : b) x = static_cast<int8_t>(random());
    std::fill_n(a.begin(), depth, int8_t{-128});
    std::fill_n(b.begin(), depth, int8_t{-128});
    std::vector<int32_t> c(128);
    for (int32_t& x : c) x = static_cast<int32_t>(random() % 1000);
    c[0] = std::numeric_limits<int32_t>::max();
    const auto words = [](const std::vector<int8_t>& bytes) {
      std::vector<uint32_t> result(bytes.size() / 4);
      std::memcpy(result.data(), bytes.data(), bytes.size());
      return result;
    };
    const DeviceArray<uint32_t> device_a(words(a));
    const DeviceArray<uint32_t> device_b(words(b));
    const DeviceArray<int32_t> d(c);
    ExpectNoFault(LaunchByteMatrix(
        {device_a.get(), device_b.get(), static_cast<int>(depth), d.get()}, nullptr));
    const std::vector<int32_t> actual = d.Read(128);
    for (size_t i = 0; i < 128; ++i) {
      const size_t row = i / 16 + (i % 4 >= 2 ? 8 : 0);
      const size_t column = 2 * (i / 4 % 4) + i % 2;
      int64_t expected = c[i];
      for (size_t k = 0; k < depth; ++k) expected += a[row * depth + k] * b[column * depth + k];
      EXPECT_EQ(actual[i], static_cast<int32_t>(static_cast<uint32_t>(expected)))
          << "depth " << depth << " element " << i;
    }
  }
}

}  // namespace
}  // namespace llm
