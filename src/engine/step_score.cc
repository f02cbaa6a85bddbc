// Commit of scored chunks: their rows leave the step as log-probabilities.
#include <algorithm>
#include <new>

#include "src/engine/step_loop.h"

namespace llm {

void StepLoop::CommitScores(const std::vector<ScheduledChunk>& chunks) {
  size_t row = 0;
  for (const ScheduledChunk& chunk : chunks) {
    const size_t first_row = row;
    row += static_cast<size_t>(chunk.num_logits);
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (request->score == nullptr || chunk.num_logits == 0 || !request->open()) continue;
    try {
      CommitScore(request, chunk, first_row);
    } catch (const std::bad_alloc&) {
      EndOutOfMemory(request);
    }
  }
}

void StepLoop::CommitScore(ActiveRequest* request, const ScheduledChunk& chunk, size_t row) {
  const absl::Status status = AddScores(request, chunk, row);
  if (!status.ok()) {
    const bool cancelled = status.code() == absl::StatusCode::kCancelled;
    End(request, cancelled ? FinishReason::kCancelled : FinishReason::kError, status);
  } else if (request->score_begin == request->num_tokens()) {
    End(request, FinishReason::kLength, absl::OkStatus());
  }
}

// A sequence that is preempted later computes these tokens again, but not their logits.
absl::Status StepLoop::AddScores(ActiveRequest* request, const ScheduledChunk& chunk, size_t row) {
  const size_t vocab_size = static_cast<size_t>(logits_.vocab_size);
  const int32_t end = chunk.begin + chunk.length;
  for (int32_t position = end - chunk.num_logits; position < end; ++position, ++row) {
    ScoreRow scored;
    scored.position = position + 1;
    scored.id = request->score->NextId(request->tokens, position);
    scored.logits = absl::MakeConstSpan(logits_.logits + row * vocab_size, vocab_size);
    scored.logprob = scored.logits[static_cast<size_t>(scored.id)] - logits_.log_sum_exp[row];
    if (absl::Status status = request->score->Add(scored); !status.ok()) return status;
  }
  request->score_begin = end;
  return absl::OkStatus();
}

}  // namespace llm
