// Shuffles, votes, atomics.
#include "tests/cuda_on_cpu/warp.h"

#include "absl/strings/str_cat.h"

namespace llm::cuda_on_cpu {
namespace {

struct ShuffleOperand {
  ShuffleMode mode;
  uint64_t bits;
  int lane;
  int width;
  uint64_t result;
};

// The lane that `self` reads from.
int SourceOf(const ShuffleOperand& operand, int self) {
  const int begin = self & ~(operand.width - 1);
  const int end = begin + operand.width;
  switch (operand.mode) {
    case ShuffleMode::kIndex:
      return begin + (operand.lane & (operand.width - 1));
    case ShuffleMode::kXor: {
      const int source = self ^ operand.lane;
      return source < end ? source : self;
    }
    case ShuffleMode::kUp:
      return self - operand.lane >= begin ? self - operand.lane : self;
    case ShuffleMode::kDown:
      return self + operand.lane < end ? self + operand.lane : self;
  }
  return self;
}

void ResolveShuffle(void* const* operands, uint32_t mask) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    auto* operand = static_cast<ShuffleOperand*>(operands[lane]);
    const int source = SourceOf(*operand, lane);
    if (source < 0 || source >= kWarpSize || operands[source] == nullptr) {
      Fault(absl::StrCat("a shuffle reads lane ", source, ", which takes no part"));
    }
    operand->result = static_cast<const ShuffleOperand*>(operands[source])->bits;
  }
}

struct BallotOperand {
  bool predicate;
  uint32_t result;
};

void ResolveBallot(void* const* operands, uint32_t mask) {
  uint32_t result = 0;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) == 0) continue;
    if (static_cast<const BallotOperand*>(operands[lane])->predicate) result |= 1u << lane;
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask >> lane & 1) != 0) static_cast<BallotOperand*>(operands[lane])->result = result;
  }
}

template <typename T>
T AddAtomically(T* address, T value) {
  CheckAccess(address, sizeof(T), false);
  const T before = *address;
  *address = before + value;
  return before;
}

}  // namespace

uint64_t ShuffleBits(ShuffleMode mode, uint32_t mask, uint64_t bits, int lane, int width) {
  if (width < 1 || width > kWarpSize || (width & (width - 1)) != 0) {
    Fault(absl::StrCat("a shuffle of width ", width));
  }
  ShuffleOperand operand = {mode, bits, lane, width, 0};
  WarpCollective("shuffle", mask, ResolveShuffle, &operand);
  return operand.result;
}

uint32_t Ballot(uint32_t mask, bool predicate) {
  BallotOperand operand = {predicate, 0};
  WarpCollective("ballot", mask, ResolveBallot, &operand);
  return operand.result;
}

int AtomicAdd(int* address, int value) { return AddAtomically(address, value); }
float AtomicAdd(float* address, float value) { return AddAtomically(address, value); }
unsigned long long AtomicAdd(unsigned long long* address, unsigned long long value) {
  return AddAtomically(address, value);
}

}  // namespace llm::cuda_on_cpu
