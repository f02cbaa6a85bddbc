// Model directories against the logits of their golden files.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/engine/directory_model.h"
#include "tests/golden/golden_util.h"
#include "tests/support/model_harness.h"

namespace llm {

// Another order of additions moves a logit by a small multiple of what f32 itself moves it from
// f64; the file has 6 digits.
inline double Tolerance(const nlohmann::json& golden, double value) {
  return 20 * golden.value("f32_vs_f64_max_abs", 1e-5) + 1e-5 * std::abs(value);
}

// Returns the largest error of the last position's logits.
inline double CheckPrompt(const nlohmann::json& golden, const nlohmann::json& prompt,
                          ModelHarness* harness) {
  const auto vocab = static_cast<size_t>(harness->model().config.vocab_size);
  const size_t n = prompt["ids"].size();
  auto tokens = prompt["ids"].get<std::vector<int32_t>>();
  const auto greedy = prompt["greedy"].get<std::vector<int32_t>>();
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  harness->Reset();
  const auto sequence = harness->NewSequence(tokens, static_cast<int>(tokens.size()));
  const absl::StatusOr<std::vector<float>> logits =
      harness->LogitsOfAll(sequence.get(), harness->model().config.context_length);
  EXPECT_TRUE(logits.ok()) << logits.status();
  if (!logits.ok()) return 0;
  double worst = 0;
  int wrong = 0;
  for (size_t i = 0; i < vocab; ++i) {
    const double expected = prompt["last_logits"][i];
    const double error = std::abs(static_cast<double>((*logits)[(n - 1) * vocab + i]) - expected);
    worst = std::max(worst, error);
    if (error > Tolerance(golden, expected)) ++wrong;
  }
  EXPECT_EQ(wrong, 0) << "logits of a prompt of " << n << " tokens, off by up to " << worst;
  for (size_t i = 0; i < greedy.size(); ++i) {
    if (prompt["greedy_margin"][i] < 2 * Tolerance(golden, 10)) continue;
    const float* row = logits->data() + (n - 1 + i) * vocab;
    EXPECT_EQ(std::max_element(row, row + vocab) - row, greedy[i]) << "greedy token " << i;
  }
  return worst;
}

inline std::unique_ptr<WeightSource> OpenDirectory(const std::string& folder) {
  absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenModelPath(folder, {});
  EXPECT_TRUE(file.ok()) << file.status();
  if (!file.ok()) return nullptr;
  absl::StatusOr<std::unique_ptr<WeightSource>> source = OpenGguf(*std::move(file), {});
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

// A tensor as f32; empty, with a failure, where it cannot be read.
inline std::vector<float> Decoded(const WeightSource& source, const std::string& name) {
  const TensorInfo* tensor = source.Find(name);
  if (tensor == nullptr) return {};
  std::vector<char> bytes(tensor->size_bytes);
  const absl::Status read = source.Read(*tensor, 0, bytes.size(), bytes.data());
  EXPECT_TRUE(read.ok()) << read;
  int64_t count = 1;
  for (const int64_t size : tensor->shape) count *= size;
  std::vector<float> values(static_cast<size_t>(count));
  if (read.ok()) GetWeightFormat(tensor->format).decode(bytes.data(), count, values.data());
  return values;
}

}  // namespace llm
