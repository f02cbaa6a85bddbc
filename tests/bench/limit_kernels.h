// Loops that do nothing but one kind of work, per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace bench {

struct LimitKernel {
  const char* name;
  void (*read)(const uint64_t* words, size_t num_words);  // num_words: a multiple of 1024
  void (*int8)(uint64_t repetitions);
  uint64_t int8_ops;  // multiplications and additions a repetition
  void (*f32)(uint64_t repetitions);
  uint64_t f32_ops;
};

// Those that this CPU can run, the plainest first.
std::vector<LimitKernel> LimitKernels();

}  // namespace bench
