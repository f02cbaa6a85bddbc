// Opens models and golden files of the test data.
#pragma once

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"

namespace llm {

inline bool FileExists(const std::string& path) { return std::ifstream(path).good(); }

// Null, with a test failure, when the file cannot be read.
inline std::unique_ptr<WeightSource> OpenModel(const std::string& path) {
  absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenModelFile(path);
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<WeightSource>> source = OpenGguf(*std::move(file), {});
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

inline nlohmann::json ReadJson(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
}

inline double LogSumExp(const float* logits, size_t size) {
  double max = logits[0];
  for (size_t i = 1; i < size; ++i) max = std::max(max, static_cast<double>(logits[i]));
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(static_cast<double>(logits[i]) - max);
  return max + std::log(sum);
}

// Rounding to int8 in groups of 32 moves an activation by up to amax / 254, uniformly: by amax /
// (127 sqrt(12)) = amax / 440 rms. Of 32 normal values amax is 2.1 to 3 times their rms, so that a
// linear layer's outputs are off by 1 / 150 of their rms (the weights multiply both alike). That
// many layers lie one behind the other on the way to a logit: 4 a layer (value, output, up, down;
// queries and keys move the values' weights, gates their products: as much again each) and the
// head; their errors are independent. Six standard deviations hold for all the logits that are
// looked at.
inline double Int8Tolerance(const nlohmann::json& prompt, int num_layers) {
  double squares = 0;
  for (const double logit : prompt["last_logits"]) squares += logit * logit;
  const double rms = std::sqrt(squares / static_cast<double>(prompt["last_logits"].size()));
  return 6 * std::sqrt(8.0 * num_layers + 1) / 150 * rms;
}

}  // namespace llm
