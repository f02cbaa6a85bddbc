// Embeddings: the pooled hidden state of a text.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/engine/request_spec.h"

namespace llm {

enum class Pooling { kMean, kLast };

struct EmbedSpec : TextSpec {
  Pooling pooling = Pooling::kMean;
  bool normalize = true;  // to length 1
};

// What an embedded request collects: written by the engine thread, read by the caller once FINISHED
// has come.
class EmbedSink {
 public:
  EmbedSink(Pooling pooling, bool normalize, int32_t hidden_size)
      : pooling_(pooling),
        normalize_(normalize),
        sums_(static_cast<size_t>(hidden_size), 0.0),
        values_(static_cast<size_t>(hidden_size), 0.0f) {}

  // First token whose hidden state is pooled.
  int32_t begin(int32_t num_tokens) const {
    return pooling_ == Pooling::kMean ? 0 : num_tokens - 1;
  }

  // Adds the next token's row, [hidden_size]. Each element is summed in the order of tokens, so
  // that no schedule changes a bit. Allocates nothing, as Finish does.
  void Add(absl::Span<const float> row);
  // All rows are there. A mean of length 0 stays as it is.
  void Finish();

  std::vector<float> TakeValues() { return std::move(values_); }

 private:
  const Pooling pooling_;
  const bool normalize_;
  int64_t num_rows_ = 0;
  std::vector<double> sums_;   // [hidden_size]
  std::vector<float> values_;  // [hidden_size]
};

}  // namespace llm
