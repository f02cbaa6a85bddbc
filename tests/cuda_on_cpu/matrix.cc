// ldmatrix and mma by the tables of the PTX ISA ("Warp-level matrix instructions").
#include <array>
#include <bit>
#include <cmath>

#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/warp.h"

namespace llm::cuda_on_cpu {
namespace {

constexpr uint32_t kAllLanes = 0xffffffffu;

MmaOrder g_order = MmaOrder::kAscending;

struct LoadOperand {
  int count;
  bool transpose;
  const void* row;
  uint32_t* registers;
};

uint16_t ElementOf(void* const* operands, int matrix, int row, int column) {
  const auto* operand = static_cast<const LoadOperand*>(operands[8 * matrix + row]);
  uint16_t element;
  std::memcpy(&element, static_cast<const std::byte*>(operand->row) + 2 * column, sizeof(element));
  return element;
}

void ResolveLoad(void* const* operands, uint32_t /*mask*/) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto* operand = static_cast<const LoadOperand*>(operands[lane]);
    for (int matrix = 0; matrix < operand->count; ++matrix) {
      uint32_t packed = 0;
      for (int i = 0; i < 2; ++i) {
        const int row = lane / 4;
        const int column = 2 * (lane % 4) + i;
        const uint32_t element = operand->transpose ? ElementOf(operands, matrix, column, row)
                                                    : ElementOf(operands, matrix, row, column);
        packed |= element << (16 * i);
      }
      operand->registers[matrix] = packed;
    }
  }
}

struct MmaOperand {
  MmaType type;
  float* d;
  const uint32_t* a;
  const uint32_t* b;
};

float HalfOf(MmaType type, uint32_t packed, int half) {
  const auto bits = static_cast<uint16_t>(packed >> (16 * half));
  return type == MmaType::kF16 ? F16ToF32(bits) : BF16ToF32(bits);
}

// Products are exact in double (11 bits times 11, or fewer); each addition rounds to float.
template <size_t kDepth>
float AddProducts(const std::array<float, kDepth>& a, const std::array<float, kDepth>& b, float c) {
  if (g_order == MmaOrder::kAscending) {
    float sum = c;
    for (size_t k = 0; k < kDepth; ++k) {
      sum = static_cast<float>(double{sum} + double{a[k]} * double{b[k]});
    }
    return sum;
  }
  float halves[2] = {0, 0};
  for (size_t k = kDepth; k-- > 0;) {
    float& half = halves[k % 2];
    half = static_cast<float>(double{half} + double{a[k]} * double{b[k]});
  }
  return halves[1] + halves[0] + c;
}

void ResolveMma(void* const* operands, uint32_t /*mask*/) {
  std::array<std::array<float, 16>, 16> a;  // [row][k]
  std::array<std::array<float, 16>, 8> b;   // [column][k]
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto* operand = static_cast<const MmaOperand*>(operands[lane]);
    const auto group = static_cast<size_t>(lane / 4);
    const auto k = static_cast<size_t>(2 * (lane % 4));
    for (size_t i = 0; i < 8; ++i) {
      const size_t row = group + (i / 2 % 2 == 1 ? 8 : 0);
      a[row][k + i % 2 + (i < 4 ? 0 : 8)] =
          HalfOf(operand->type, operand->a[i / 2], static_cast<int>(i % 2));
    }
    for (size_t i = 0; i < 4; ++i) {
      b[group][k + i % 2 + (i < 2 ? 0 : 8)] =
          HalfOf(operand->type, operand->b[i / 2], static_cast<int>(i % 2));
    }
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto* operand = static_cast<const MmaOperand*>(operands[lane]);
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = static_cast<size_t>(lane / 4) + (i < 2 ? 0 : 8);
      const size_t column = static_cast<size_t>(2 * (lane % 4)) + i % 2;
      operand->d[i] = AddProducts(a[row], b[column], operand->d[i]);
    }
  }
}

struct MmaS8Operand {
  int depth;
  int* d;
  const uint32_t* a;
  const uint32_t* b;
};

int ByteOf(uint32_t packed, int i) { return static_cast<int8_t>(packed >> (8 * i) & 0xff); }

// Lane 4 group + t has k of 4 t to 4 t + 3, and 16 more in the second half of its registers: a's in
// rows group and group + 8, b's in column group.
void ResolveMmaS8(void* const* operands, uint32_t /*mask*/) {
  const auto operand = [&](int group, int t) {
    return static_cast<const MmaS8Operand*>(operands[4 * group + t]);
  };
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const auto* own = static_cast<const MmaS8Operand*>(operands[lane]);
    for (int i = 0; i < 4; ++i) {
      const int row_half = i / 2;
      const int column = lane % 4 * 2 + i % 2;
      uint32_t sum = static_cast<uint32_t>(own->d[i]);
      for (int k = 0; k < own->depth; ++k) {
        const int t = k % 16 / 4;
        const uint32_t a = operand(lane / 4, t)->a[k / 16 * 2 + row_half];
        const uint32_t b = operand(column, t)->b[k / 16];
        sum += static_cast<uint32_t>(ByteOf(a, k % 4) * ByteOf(b, k % 4));
      }
      own->d[i] = static_cast<int>(sum);
    }
  }
}

// Elements of a and b as ResolveMmaS8 finds them.
void ResolveMmaE4M3(void* const* operands, uint32_t /*mask*/) {
  std::array<std::array<float, 32>, 16> a;  // [row][k]
  std::array<std::array<float, 32>, 8> b;   // [column][k]
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    const auto* operand = static_cast<const MmaOperand*>(operands[lane]);
    for (size_t i = 0; i < 16; ++i) {
      const size_t k = lane % 4 * 4 + i % 4;
      const auto code = [&](const uint32_t* registers) {
        return F8E4M3ToF32(static_cast<uint8_t>(registers[i / 4] >> (8 * (i % 4)) & 0xff));
      };
      a[lane / 4 + i / 4 % 2 * 8][k + i / 8 * 16] = code(operand->a);
      if (i < 8) b[lane / 4][k + i / 4 * 16] = code(operand->b);
    }
  }
  for (size_t lane = 0; lane < kWarpSize; ++lane) {
    const auto* operand = static_cast<const MmaOperand*>(operands[lane]);
    for (size_t i = 0; i < 4; ++i) {
      operand->d[i] = AddProducts(a[lane / 4 + i / 2 * 8], b[lane % 4 * 2 + i % 2], operand->d[i]);
    }
  }
}

}  // namespace

void LoadMatrix(int count, bool transpose, const void* row, uint32_t* registers) {
  // Every lane's address must be usable, also where only the first 8 or 16 count.
  if (reinterpret_cast<uintptr_t>(row) % 16 != 0) {
    Fault("ldmatrix from a row that is not at a multiple of 16 bytes");
  }
  if (LaneIndex() < 8 * count) CheckAccess(row, 16, false);
  LoadOperand operand = {count, transpose, row, registers};
  WarpCollective(transpose ? "ldmatrix.trans" : "ldmatrix", kAllLanes, ResolveLoad, &operand);
}

void set_mma_order(MmaOrder order) { g_order = order; }

void Mma(MmaType type, float* d, const uint32_t* a, const uint32_t* b) {
  MmaOperand operand = {type, d, a, b};
  WarpCollective(type == MmaType::kF16 ? "mma.f16" : "mma.bf16", kAllLanes, ResolveMma, &operand);
}

void MmaE4M3(float* d, const uint32_t* a, const uint32_t* b) {
  MmaOperand operand = {{}, d, a, b};
  WarpCollective("mma.m16n8k32.e4m3", kAllLanes, ResolveMmaE4M3, &operand);
}

void MmaS8(int depth, int* d, const uint32_t* a, const uint32_t* b) {
  MmaS8Operand operand = {depth, d, a, b};
  WarpCollective(depth == 32 ? "mma.m16n8k32.s8" : "mma.m16n8k16.s8", kAllLanes, ResolveMmaS8,
                 &operand);
}

}  // namespace llm::cuda_on_cpu
