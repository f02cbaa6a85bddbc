// Commit of embedded chunks: their hidden states leave the step into the pool.
#include <algorithm>
#include <cmath>

#include "src/engine/step_loop.h"

namespace llm {

absl::Status StepLoop::CheckHidden(size_t row, int32_t count) const {
  const size_t size = static_cast<size_t>(logits_.hidden_size);
  const float* begin = logits_.hidden + row * size;
  const bool finite = std::all_of(begin, begin + static_cast<size_t>(count) * size,
                                  [](float value) { return std::isfinite(value); });
  return finite ? absl::OkStatus() : absl::InternalError("hidden states are not finite");
}

// A sequence that is preempted later computes these tokens again, but none is pooled twice.
void StepLoop::CommitEmbeddings(const std::vector<ScheduledChunk>& chunks) {
  const size_t size = static_cast<size_t>(logits_.hidden_size);
  const float* row = logits_.hidden;
  for (const ScheduledChunk& chunk : chunks) {
    if (chunk.num_hidden == 0) continue;
    const float* end = row + static_cast<size_t>(chunk.num_hidden) * size;
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (request->embed == nullptr || !request->open()) {
      row = end;
      continue;
    }
    for (; row != end; row += size) request->embed->Add(absl::MakeConstSpan(row, size));
    request->score_begin = chunk.begin + chunk.length;
    if (request->score_begin < request->num_tokens()) continue;
    request->embed->Finish();
    End(request, FinishReason::kLength, absl::OkStatus());
  }
}

}  // namespace llm
