// A piece of a window is scored by the base first, whose rows wait for those of the candidates.
#include "eval/configuration.h"

#include <algorithm>
#include <cstdio>

#include "common/text.h"

namespace eval {
namespace {

constexpr size_t kMaxRowBytes = size_t{256} << 20;
constexpr size_t kDecodedTokens = 64;

int32_t CallOnRow(void* user_data, const llm_score_row* row) {
  (*static_cast<const OnRow*>(user_data))(*row);
  return 0;
}

// Appends what ids [first, end) score.
void ScoreInto(Candidate* candidate, const std::vector<int32_t>& ids, size_t first, size_t end,
               const OnRow& on_row, std::vector<float>* logprobs) {
  const std::vector<float> part = candidate->configuration->Score(ids, first, end, on_row);
  logprobs->insert(logprobs->end(), part.begin(), part.end());
}

void ScoreWindow(const std::vector<int32_t>& window, size_t rows_at_once, Candidate* base,
                 std::vector<Candidate>* candidates) {
  const size_t vocab_size =
      static_cast<size_t>(tools::ModelInfo(base->configuration->model()).vocab_size);
  std::vector<std::vector<float>> logprobs(candidates->size() + 1);
  BaseRows rows;
  for (size_t first = window.size() / 2; first < window.size(); first += rows_at_once) {
    const size_t end = std::min(first + rows_at_once, window.size());
    OnRow add_base;
    if (!candidates->empty()) {
      rows.Begin(end - first, vocab_size);
      add_base = [&](const llm_score_row& row) { rows.Add(row); };
    }
    ScoreInto(base, window, first, end, add_base, &logprobs[0]);
    for (size_t i = 0; i < candidates->size(); ++i) {
      Candidate& candidate = (*candidates)[i];
      size_t index = 0;
      const OnRow add = [&](const llm_score_row& row) {
        candidate.divergence.Add(rows, index++, row);
      };
      ScoreInto(&candidate, window, first, end, add, &logprobs[i + 1]);
    }
  }
  base->perplexity.AddWindow(logprobs[0]);
  for (size_t i = 0; i < candidates->size(); ++i)
    (*candidates)[i].perplexity.AddWindow(logprobs[i + 1]);
}

}  // namespace

Configuration::Configuration(const tools::OpenFlags& flags, size_t context,
                             const Configuration* other)
    : flags_(flags), context_(context) {
  if (other != nullptr && tools::SameModel(flags, other->flags_)) {
    model_ = other->model_;
  } else {
    model_ = std::make_shared<const inlay::Model>(tools::OpenModel(flags));
  }
  llm_engine_options options = tools::EngineOptions(flags);
  options.prefix_cache = LLM_OFF;
  // The rows of logits that a step may have come with the sequences: 64 keep steps long.
  options.max_sequences = 64;
  options.max_context_tokens = static_cast<uint32_t>(context);
  options.kv_tokens = context + 2 * std::max(flags.block_size, 16u) + 256;
  tools::Check(inlay::Engine::Open(*model_, &options, &engine_));
}

std::vector<float> Configuration::Score(const std::vector<int32_t>& ids, size_t first, size_t end,
                                        const OnRow& on_row) {
  llm_score_request request;
  llm_score_request_init(&request);
  request.ids = ids.data();
  request.num_ids = end;
  request.first = first;
  if (on_row) {
    request.on_row = &CallOnRow;
    request.user_data = const_cast<OnRow*>(&on_row);
  }
  std::vector<float> logprobs(end - first);
  size_t count = 0;
  tools::Check(llm_score(engine_.get(), &request, logprobs.data(), logprobs.size(), &count));
  if (count != logprobs.size()) tools::Fail("a score came back with another number of tokens");
  return logprobs;
}

Speed Configuration::Measure(const std::vector<int32_t>& ids) {
  const size_t new_tokens = std::min(kDecodedTokens, context_ / 4);
  const size_t prompt_tokens = std::min(context_ - new_tokens, ids.size());
  Speed best;
  for (int i = 0; new_tokens > 1 && i < 3; ++i) {
    const Speed speed = MeasureOnce(ids, prompt_tokens, new_tokens);
    best.prefill = std::max(best.prefill, speed.prefill);
    best.decode = std::max(best.decode, speed.decode);
  }
  return best;
}

Speed Configuration::MeasureOnce(const std::vector<int32_t>& ids, size_t prompt_tokens,
                                 size_t new_tokens) {
  llm_request request = inlay::Request();
  request.prompt_ids = ids.data();
  request.num_prompt_ids = prompt_tokens;
  request.max_new_tokens = static_cast<uint32_t>(new_tokens);
  request.ignore_eos = LLM_ON;
  llm_request_id id = 0;
  tools::Check(engine_.Submit(request, &id));
  Speed speed;
  for (bool finished = false; !finished;) {
    tools::Check(inlay::Poll(engine_.queue(), -1, [&](const llm_event& event) {
      if (event.type != LLM_EVENT_FINISHED) return;
      finished = true;
      if (event.status != LLM_OK) tools::Fail(std::string(inlay::View(event.message)));
      const llm_request_stats& stats = *event.stats;
      speed.prefill = 1e9 * static_cast<double>(prompt_tokens) /
                      static_cast<double>(std::max<int64_t>(stats.prefill_ns, 1));
      speed.decode = 1e9 * static_cast<double>(new_tokens - 1) /
                     static_cast<double>(std::max<int64_t>(stats.decode_ns, 1));
    }));
  }
  return speed;
}

std::string Configuration::Description() const {
  const llm_model_info info = tools::ModelInfo(*model_);
  return "kv-dtype " + flags_.kv_dtype + ", " + (flags_.float_activations ? "f32" : "default") +
         " activations, kernels " + std::string(inlay::View(info.kernels));
}

void ScoreWindows(const std::vector<std::vector<int32_t>>& windows, Candidate* base,
                  std::vector<Candidate>* candidates) {
  const size_t vocab_size =
      static_cast<size_t>(tools::ModelInfo(base->configuration->model()).vocab_size);
  const size_t rows_at_once = std::max<size_t>(kMaxRowBytes / (vocab_size * sizeof(float)), 1);
  for (size_t i = 0; i < windows.size(); ++i) {
    ScoreWindow(windows[i], rows_at_once, base, candidates);
    std::fprintf(stderr, "window %zu of %zu: perplexity so far %.4f\n", i + 1, windows.size(),
                 base->perplexity.Value());
  }
}

}  // namespace eval
