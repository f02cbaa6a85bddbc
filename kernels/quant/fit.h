// The search for the scale of a group of weights.
#pragma once

#include <cstdint>

namespace llm {

struct WeightGroup {
  const float* weights = nullptr;
  int64_t size = 0;  // a multiple of 32
};

// weight = scale * quant + min, for quants of [0, 15]; both are values of f16.
struct AffineFit {
  float scale = 0;
  float min = 0;
};

// The scale, a value of f16, for which weights rounded to scale * [low, high] lie closest to what
// they were: the least sum of squares of those tried. It may be negative. 0 where all
// weights are, or where f16 has no such small number; NaN when a weight is none or
// beyond the range of f16.
float FitScale(const WeightGroup& group, int low, int high);
// The same for weights rounded to scale * E4M3; not negative, and a value of f32. 0 where all
// weights are; NaN when a weight is none or beyond the range of f16.
float FitE4M3Scale(const WeightGroup& group);
AffineFit FitAffine(const WeightGroup& group);

}  // namespace llm
