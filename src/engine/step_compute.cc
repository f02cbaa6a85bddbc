// The second half of a step: compute logits, sample, and commit.
#include <algorithm>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/nvtx.h"
#include "src/base/status_macros.h"
#include "src/engine/drawn_token.h"
#include "src/engine/step_loop.h"

namespace llm {
namespace {

absl::Status CheckFinite(absl::Span<const int32_t> argmax) {
  const bool finite = std::all_of(argmax.begin(), argmax.end(), [](int32_t id) { return id >= 0; });
  return finite ? absl::OkStatus() : absl::InternalError("logits are not finite");
}

// Whether the next token is drawn from the chunk's last row.
bool Samples(const ScheduledChunk& chunk) {
  return RequestOf(chunk.sequence)->generates() &&
         chunk.begin + chunk.length == chunk.sequence->num_tokens();
}

}  // namespace

// Whatever goes wrong here leaves the sequences alone: the step can still be rolled back.
absl::Status StepLoop::Compute(const StepPlan& plan) {
  try {
    const SteadyClock real_time;  // the host's clock may show anything
    const Clock& clock = options_.device_clock != nullptr ? *options_.device_clock : real_time;
    const int64_t start_ns = clock.NowNs();
    absl::StatusOr<StepLogits> logits = [&] {
      NvtxRange range("forward");
      return runner_->Execute(plan);
    }();
    laps_.End(StepPart::kForward);
    LLM_RETURN_IF_ERROR(logits.status());
    logits_ = *logits;
    const absl::Status status = SampleRows(plan);
    const int64_t device_ns = logits_.device_ns;
    if (device_ns != StepLogits::kNotMeasured) {
      cost_.Note(plan.work, device_ns != 0 ? device_ns : clock.NowNs() - start_ns);
    }
    last_step_ns_.store(clock_->NowNs(), std::memory_order_relaxed);
    laps_.End(StepPart::kSample);
    return status;
  } catch (const std::bad_alloc&) {
    return out_of_memory_;
  } catch (...) {
    return unknown_exception_;
  }
}

absl::Status StepLoop::CheckRows(const StepPlan& plan) const {
  if (logits_.vocab_size != options_.vocab_size) {
    return absl::InternalError(absl::StrCat("the runner gave ", logits_.vocab_size,
                                            " logits a row, expected ", options_.vocab_size));
  }
  int64_t wanted = 0;
  int64_t wanted_hidden = 0;
  for (const ScheduledChunk& chunk : plan.chunks) {
    wanted += chunk.num_logits;
    wanted_hidden += chunk.num_hidden;
  }
  if (wanted != logits_.rows) {
    return absl::InternalError(absl::StrCat("the runner gave ", logits_.rows,
                                            " rows of logits, the plan asked for ", wanted));
  }
  if (wanted_hidden != 0 &&
      (wanted_hidden != logits_.hidden_rows || logits_.hidden_size != options_.hidden_size)) {
    return absl::InternalError(absl::StrCat(
        "the runner gave ", logits_.hidden_rows, " hidden states of ", logits_.hidden_size,
        ", expected ", wanted_hidden, " of ", options_.hidden_size));
  }
  return absl::OkStatus();
}

absl::Status StepLoop::SampleRows(const StepPlan& plan) {
  NvtxRange range("sample");
  LLM_RETURN_IF_ERROR(CheckRows(plan));
  rows_.clear();
  size_t row = 0;
  size_t hidden_row = 0;
  for (size_t i = 0; i < plan.chunks.size(); ++i) {
    const ScheduledChunk& chunk = plan.chunks[i];
    row += static_cast<size_t>(chunk.num_logits);
    if (chunk.num_hidden > 0) {
      const absl::Status finite = CheckHidden(hidden_row, chunk.num_hidden);
      if (!finite.ok()) rows_.push_back({i, finite});
      hidden_row += static_cast<size_t>(chunk.num_hidden);
    }
    if (chunk.num_logits == 0) continue;
    const absl::Status finite = CheckFinite(logits_.argmax.subspan(
        row - static_cast<size_t>(chunk.num_logits), static_cast<size_t>(chunk.num_logits)));
    if (!finite.ok()) rows_.push_back({i, finite});
    if (!finite.ok() || !Samples(chunk)) continue;
    rows_.push_back({i, SampleRow(chunk, row - 1)});
    // Room for the token now: commit must not fail for want of it.
    std::vector<int32_t>& tokens = chunk.sequence->tokens;
    if (tokens.size() == tokens.capacity()) tokens.reserve(2 * tokens.size());
  }
  touched_.clear();
  touched_.reserve(2 * plan.chunks.size());  // by a token, and by its prompt
  chunks_ = plan.chunks;
  return absl::OkStatus();
}

absl::StatusOr<SampledToken> StepLoop::SampleRow(const ScheduledChunk& chunk, size_t row) {
  if (logits_.logits == nullptr) {
    SampledToken token;
    token.id = logits_.argmax[row];
    return token;
  }
  const Sequence& sequence = *chunk.sequence;
  const SamplingParams& params = sequence.request.sampling;
  if (row < logits_.draw_of_row.size() && logits_.draw_of_row[row] >= 0) {
    return DrawnToken(logits_, static_cast<size_t>(logits_.draw_of_row[row]), params.num_logprobs);
  }
  const size_t vocab_size = static_cast<size_t>(logits_.vocab_size);
  LogitsRow one;
  if (NeedsLogits(chunk)) {
    one.logits = absl::MakeSpan(logits_.logits + row * vocab_size, vocab_size);
  } else if (logits_.argmax[row] >= logits_.vocab_size) {
    return absl::InternalError(absl::StrCat("argmax ", logits_.argmax[row],
                                            " lies outside a vocabulary of ", vocab_size, " ids"));
  }
  one.argmax = logits_.argmax[row];
  one.max = logits_.max[row];
  one.log_sum_exp = logits_.log_sum_exp[row];
  if (one.argmax >= 0 && AdjustsRow(params, sequence.num_generated_tokens())) {
    return SampleAdjusted(sequence, one);
  }
  return Sample(one, params, sequence.num_tokens());
}

absl::StatusOr<SampledToken> StepLoop::SampleAdjusted(const Sequence& sequence,
                                                      const LogitsRow& row) {
  const Request& request = sequence.request;
  edits_.Collect(request, sequence.tokens);
  const LogitsRow adjusted = adjuster_.Adjust(row, edits_.edits());
  if (adjusted.argmax < 0) return absl::InternalError("bias and bans leave no token to draw");
  absl::StatusOr<SampledToken> token = Sample(adjusted, request.sampling, sequence.num_tokens());
  if (token.ok()) SetLogprobs(row, request.sampling.num_logprobs, &*token);
  return token;
}

void StepLoop::Commit(StepPlan* plan) {
  NvtxRange range("commit");
  num_failures_ = 0;
  CountStep(*plan);
  log_.Commit(*plan, laps_.last_ns());
  DropFailedRows(plan);
  scheduler_->Commit(*plan);
  CommitPrompts(chunks_);
  for (SampledRow& row : rows_) {
    ActiveRequest* request = RequestOf(chunks_[row.chunk].sequence);
    if (!request->open()) continue;  // no memory for its prompt
    if (row.token.ok()) {
      CommitRow(request, *row.token);
    } else {
      End(request, FinishReason::kError, row.token.status());
    }
  }
  CommitScores(chunks_);
  CommitEmbeddings(chunks_);
  CommitPins(chunks_);
  const int64_t now_ns = clock_->NowNs();
  for (const ScheduledChunk& chunk : chunks_) AddStepTime(RequestOf(chunk.sequence), now_ns);
}

// A row without a token fails its request alone. Its chunk leaves the plan before the scheduler
// commits: keys and values that are not finite must not be published to the prefix cache.
void StepLoop::DropFailedRows(StepPlan* plan) const {
  size_t kept = 0;
  size_t next_row = 0;
  for (size_t i = 0; i < plan->chunks.size(); ++i) {
    const bool has_row = next_row < rows_.size() && rows_[next_row].chunk == i;
    const bool failed = has_row && !rows_[next_row].token.ok();
    if (has_row) ++next_row;
    if (failed) continue;
    if (kept != i) {  // chunks and undo lie side by side
      plan->chunks[kept] = plan->chunks[i];
      plan->undo[kept] = std::move(plan->undo[i]);
    }
    ++kept;
  }
  plan->chunks.resize(kept);
  plan->undo.resize(std::min(kept, plan->undo.size()));
}

void StepLoop::CountPlan(const StepPlan& plan) {
  log_.AddPlan(plan);
  const StepRecord& record = log_.step();
  counters_.weight_bytes_read_total += record.weight_bytes_read;
  counters_.kv_bytes_read_total += record.kv_bytes_read;
  counters_.kv_bytes_written_total += record.kv_bytes_written;
}

void StepLoop::CountStep(const StepPlan& plan) {
  ++counters_.steps_total;
  counters_.scheduled_tokens_total += static_cast<uint64_t>(plan.num_tokens);
  counters_.histograms.Add(HistogramId::kStepTokens, static_cast<uint64_t>(plan.num_tokens));
  counters_.histograms.Add(HistogramId::kStepSequences, plan.chunks.size());
  for (const ScheduledChunk& chunk : plan.chunks) {
    const int32_t prompt_end =
        std::min(chunk.begin + chunk.length, chunk.sequence->num_prompt_tokens());
    if (prompt_end > chunk.begin) {
      counters_.computed_tokens_total += static_cast<uint64_t>(prompt_end - chunk.begin);
    }
  }
}

void StepLoop::CountToken(const ActiveRequest& request, int64_t now_ns) {
  ++counters_.generated_tokens_total;
  ++log_.step().generated_tokens;
  log_.Add(RecordKind::kTokens, request.request.id, 1, 0, now_ns);
  const SequenceStats& stats = request.stats;
  const uint32_t of = request.request.request_class;
  if (stats.first_token_ns != 0) {
    counters_.AddClassTime(HistogramId::kTokenGap, of, now_ns - stats.last_token_ns);
    return;
  }
  if (request.group != nullptr && std::exchange(request.group->has_token, true)) return;
  const int64_t ttft_ns = now_ns - request.request.arrival_ns;
  ++counters_.ttft_requests_total;
  counters_.ttft_ns_total += static_cast<uint64_t>(ttft_ns);
  counters_.prompt_tokens_total += request.request.prompt.size();
  counters_.AddClassTime(HistogramId::kTtft, of, ttft_ns);
  if (request.group != nullptr) return;  // its prefill is that of the choice that ends last
  counters_.histograms.AddTime(HistogramId::kPrefillTime, now_ns - stats.first_scheduled_ns);
}

// The first step of a request begins for it where it was scheduled: what came before is queueing.
void StepLoop::AddStepTime(ActiveRequest* request, int64_t now_ns) {
  const SequenceStats& stats = request->stats;
  const int64_t begin_ns = std::max(laps_.begin_ns(), stats.first_scheduled_ns);
  request->clock.AddStep(begin_ns, now_ns, stats.first_token_ns != 0);
}

void StepLoop::CommitRow(ActiveRequest* request, const SampledToken& token) {
  touched_.push_back(request);
  try {
    StageToken(request, token);
  } catch (const std::bad_alloc&) {
    request->staged.Clear();  // its arrays may disagree
    EndOutOfMemory(request);
  }
}

void StepLoop::StageToken(ActiveRequest* request, const SampledToken& token) {
  const int64_t now_ns = clock_->NowNs();
  request->tokens.push_back(token.id);
  CountToken(*request, now_ns);
  SequenceStats& stats = request->stats;
  if (stats.first_token_ns == 0) {
    AddStepTime(request, now_ns);
    stats.first_token_ns = now_ns;
  } else {
    request->longest_gap_ns = std::max(request->longest_gap_ns, now_ns - stats.last_token_ns);
  }
  stats.last_token_ns = now_ns;

  Delta& staged = request->staged;
  staged.token_ids.push_back(token.id);
  if (request->request.sampling.num_logprobs >= 0) {
    staged.logprobs.push_back({token.id, token.logprob});
    staged.logprobs.insert(staged.logprobs.end(), token.top.begin(), token.top.end());
  }
  std::string text;
  request->detokenizer.Append(token.id, &text);
  const StopCriteria::Result result =
      request->stop.Append(token.id, request->num_generated_tokens(), text, &staged.text);
  if (result.reason == FinishReason::kNone) return;
  // The text is complete, so a character that is not can be shown as what it is; a stop string has
  // cut the text before it.
  const bool by_string = result.reason == FinishReason::kStopString;
  if (!by_string) request->detokenizer.Finish(&staged.text);
  const bool by_token =
      result.reason == FinishReason::kEndToken || result.reason == FinishReason::kStopToken;
  const int32_t stop_index = by_string ? result.stop_string_index : by_token ? token.id : -1;
  End(request, result.reason, absl::OkStatus(), stop_index);
}

}  // namespace llm
