// An embedding is a request that computes its text and samples nothing, as a score is.
#include "src/engine/embed.h"

#include <cmath>
#include <memory>

#include "src/base/dcheck.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"

namespace llm {

void EmbedSink::Add(absl::Span<const float> row) {
  LLM_DCHECK(row.size() == sums_.size());
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += static_cast<double>(row[i]);
  ++num_rows_;
}

void EmbedSink::Finish() {
  LLM_DCHECK(num_rows_ > 0);
  double squares = 0;
  for (double& sum : sums_) {
    sum /= static_cast<double>(num_rows_);
    squares += sum * sum;
  }
  const double scale = normalize_ && squares > 0 ? 1 / std::sqrt(squares) : 1;
  for (size_t i = 0; i < sums_.size(); ++i) values_[i] = static_cast<float>(sums_[i] * scale);
}

absl::StatusOr<std::vector<float>> Engine::Embed(const EmbedSpec& embed) {
  const CallCount::Scope inside(&calls_);
  LLM_RETURN_IF_ERROR(CheckMayWait("embed"));
  RequestSpec spec = RequestOf(embed);
  spec.embed = std::make_shared<EmbedSink>(embed.pooling, embed.normalize, parts_.text.hidden_size);
  uint64_t id = 0;
  LLM_RETURN_IF_ERROR(SubmitAndWait(&spec, &id));
  return spec.embed->TakeValues();
}

}  // namespace llm
