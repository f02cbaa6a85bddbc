// Commit of prompts that are told: their rows leave the step as log-probabilities of the tokens
// that follow them.
#include <algorithm>
#include <new>

#include "src/engine/step_loop.h"

namespace llm {

// Before the tokens: a request may end by the first one, in the step that computes its last rows.
void StepLoop::CommitPrompts(const std::vector<ScheduledChunk>& chunks) {
  size_t row = 0;
  for (const ScheduledChunk& chunk : chunks) {
    const size_t first_row = row;
    row += static_cast<size_t>(chunk.num_logits);
    ActiveRequest* request = RequestOf(chunk.sequence);
    if (!request->tells_prompt() || chunk.num_logits == 0 || !request->open()) continue;
    const auto argmax = logits_.argmax.subspan(first_row, static_cast<size_t>(chunk.num_logits));
    if (*std::min_element(argmax.begin(), argmax.end()) < 0) continue;  // it fails with its rows
    touched_.push_back(request);
    try {
      StagePrompt(request, chunk, first_row);
    } catch (const std::bad_alloc&) {
      request->staged_prompt.Clear();  // its arrays may disagree
      EndOutOfMemory(request);
    }
  }
}

// A sequence that is preempted later computes these tokens again, but not their logits.
void StepLoop::StagePrompt(ActiveRequest* request, const ScheduledChunk& chunk, size_t row) {
  const size_t vocab_size = static_cast<size_t>(logits_.vocab_size);
  const std::vector<int32_t>& prompt = request->request.prompt;
  const int32_t end = chunk.begin + chunk.length;
  Delta& staged = request->staged_prompt;
  for (int32_t position = end - chunk.num_logits; position < end; ++position, ++row) {
    const size_t next = static_cast<size_t>(position) + 1;
    if (next == prompt.size()) break;  // what this row predicts is drawn
    LogitsRow one;
    one.logits = absl::MakeConstSpan(logits_.logits + row * vocab_size, vocab_size);
    one.log_sum_exp = logits_.log_sum_exp[row];
    SampledToken token;
    token.id = prompt[next];
    SetLogprobs(one, request->request.num_prompt_logprobs, &token);
    staged.token_ids.push_back(token.id);
    staged.logprobs.push_back({token.id, token.logprob});
    staged.logprobs.insert(staged.logprobs.end(), token.top.begin(), token.top.end());
  }
  request->score_begin = end < request->num_prompt_tokens() ? end : -1;
}

}  // namespace llm
