// Submit: reserves a place, tokenizes on the caller's thread, and hands the request over.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/engine/engine.h"
#include "src/engine/random.h"

namespace llm {
namespace {

// Of FINISHED's message, kept for it from submit on; longer ones are cut.
constexpr size_t kMessageBytes = 256;

// Absolute time of a timeout; never 0, which means none.
int64_t DeadlineAt(int64_t now_ns, int64_t timeout_ns) {
  if (timeout_ns == 0) return 0;
  return CheckedAdd(now_ns, timeout_ns).value_or(0);
}

// What never finds room in the queue must not be told to come again. Each choice takes a place.
absl::Status CheckQueueable(const RequestSpec& spec, size_t prompt_tokens,
                            const QueueBounds& bounds) {
  if (spec.choices > bounds.max_requests) {
    return absl::InvalidArgumentError(absl::StrCat(
        "choices: ", spec.choices, " exceed max_queued_requests, ", bounds.max_requests));
  }
  if (static_cast<int64_t>(prompt_tokens) > bounds.max_tokens / spec.choices) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: ", prompt_tokens, " tokens, for ", spec.choices,
                     " choices, exceed max_queued_tokens, ", bounds.max_tokens));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Engine::Submit(const RequestSpec& spec, uint64_t* id) {
  const int64_t start_ns = trace_.on() ? parts_.clock->NowNs() : 0;
  absl::Status status = queue_.CheckOpen();
  if (status.ok()) status = ValidateSpec(spec, parts_.text);
  if (status.ok() && parts_.virtual_clock != nullptr) status = CheckSimulable(spec);
  if (status.ok() && spec.arrival_ns != 0) status = AwaitArrival(spec.arrival_ns);
  if (status.ok()) status = CheckQueueable(spec, spec.prompt_ids.size(), queue_.usage()->bounds());
  QueuePlace place;
  if (status.ok()) {
    const size_t bytes = spec.prompt_kind == PromptKind::kIds ? 0 : spec.text.size();
    status = QueuePlace::Reserve(queue_.usage(), spec.choices, TokenBound(spec, bytes), &place);
    if (!status.ok()) status = TellWhenToRetry(status);
  }
  if (status.ok()) status = SubmitReserved(spec, std::move(place), id);
  if (!status.ok()) CountRejected(status.code());
  if (start_ns != 0) TraceSubmit(start_ns, status.ok() ? *id : 0);
  return status;
}

void Engine::CountRejected(absl::StatusCode code) {
  queue_.CountRejected(code);
  loop_.log().Add(RecordKind::kRejected, 0, 0, static_cast<int64_t>(code), parts_.clock->NowNs());
}

void Engine::TraceSubmit(int64_t start_ns, uint64_t id) {
  TraceSpan span;
  span.name = "submit";
  span.role = "caller";
  span.begin_ns = start_ns;
  span.end_ns = parts_.clock->NowNs();
  span.args[0] = {"request", static_cast<int64_t>(id)};
  trace_.Add({span});
}

// The place in tokens before they are counted: a token has at least a byte, and no prompt is longer
// than the context. Each choice keeps the prompt.
int64_t Engine::TokenBound(const RequestSpec& spec, size_t text_bytes) const {
  if (spec.prompt_kind == PromptKind::kIds) {
    return static_cast<int64_t>(spec.prompt_ids.size()) * spec.choices;
  }
  const int64_t bound =
      std::min<int64_t>(static_cast<int64_t>(text_bytes) + 2, options_.max_context_tokens);
  return std::min(bound * spec.choices, queue_.usage()->bounds().max_tokens);
}

absl::Status Engine::SubmitReserved(const RequestSpec& spec, QueuePlace place, uint64_t* id) {
  LLM_ASSIGN_OR_RETURN(Request request, MakeRequest(spec, &place));
  if (spec.choices > 1) return SubmitChoices(spec, request, std::move(place), id);
  std::unique_ptr<ActiveRequest> active = MakeActive(spec, std::move(request));
  active->place = std::move(place);
  return queue_.Push(absl::MakeSpan(&active, 1), id);
}

std::unique_ptr<ActiveRequest> Engine::MakeActive(const RequestSpec& spec, Request request) const {
  auto active = std::make_unique<ActiveRequest>(std::move(request), parts_.text.tokenizer,
                                                spec.render_special);
  active->outbox = MakeOutbox(spec);
  active->score = spec.score;
  if (spec.score != nullptr) active->score_begin = spec.score->begin();
  active->pin = spec.pin;
  active->transfer = spec.transfer;
  if (spec.num_prompt_logprobs >= 0) active->score_begin = 0;
  active->embed = spec.embed;
  if (spec.embed != nullptr) {
    active->wants_hidden = true;
    active->score_begin = spec.embed->begin(active->num_tokens());
  }
  if (spec.handler.call != nullptr) {
    active->sink = dispatcher_;
  } else {
    active->sink = spec.queue != nullptr ? spec.queue : own_queue_;
  }
  return active;
}

absl::Status Engine::SubmitChoices(const RequestSpec& spec, const Request& request,
                                   QueuePlace place, uint64_t* id) {
  auto group = std::make_shared<ChoiceGroup>(spec.choices);
  group->outbox = MakeOutbox(spec);
  group->place = std::move(place);
  std::vector<std::unique_ptr<ActiveRequest>> all;
  for (uint32_t choice = 0; choice < static_cast<uint32_t>(spec.choices); ++choice) {
    Request own = request;
    own.sampling.seed = ChoiceSeed(request.sampling.seed, choice);
    all.push_back(MakeActive(spec, std::move(own)));
    ActiveRequest* active = all.back().get();
    if (choice > 0) active->score_begin = -1;  // the prompt is told once
    active->outbox->choice = choice;
    active->outbox->whole = group->outbox;
    active->group = group;
    active->siblings = &group->siblings;
    group->siblings.push_back(active);
  }
  return queue_.Push(absl::MakeSpan(all), id);
}

absl::StatusOr<Request> Engine::MakeRequest(const RequestSpec& spec, QueuePlace* place) const {
  Request request;
  request.arrival_ns = spec.arrival_ns != 0 ? spec.arrival_ns : parts_.clock->NowNs();
  LLM_ASSIGN_OR_RETURN(request.prompt, Tokenize(spec, place));
  if (spec.score != nullptr) LLM_RETURN_IF_ERROR(spec.score->TakeText(&request.prompt));
  if (spec.pin != nullptr) {
    LLM_ASSIGN_OR_RETURN(const int32_t pinned, parts_.scheduler->PinnableTokens(
                                                   static_cast<int64_t>(request.prompt.size())));
    request.prompt.resize(static_cast<size_t>(pinned));
  }
  if (spec.transfer != nullptr) LLM_RETURN_IF_ERROR(CutToBlocks(&request.prompt));
  const int64_t prompt_tokens = static_cast<int64_t>(request.prompt.size());
  int64_t max_new_tokens = spec.max_new_tokens;
  if (max_new_tokens == 0) max_new_tokens = options_.max_context_tokens - prompt_tokens;
  if (max_new_tokens <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("prompt: ", prompt_tokens, " tokens leave no room for output in a context of ",
                     options_.max_context_tokens));
  }
  // An embedding takes no place behind its text: a whole context can be embedded.
  const int64_t spare = spec.embed != nullptr && prompt_tokens > 1 ? 1 : 0;
  LLM_RETURN_IF_ERROR(parts_.scheduler->CheckFits(prompt_tokens - spare, max_new_tokens));
  if (spec.sampling.min_new_tokens > max_new_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("min_new_tokens: ", spec.sampling.min_new_tokens,
                                                   " exceeds max_new_tokens ", max_new_tokens));
  }
  request.sampling = spec.sampling;
  LLM_RETURN_IF_ERROR(TokenizeBadWords(spec, &request.sampling));
  request.sampling.num_logprobs = std::min(spec.sampling.num_logprobs, parts_.text.vocab_size);
  if (!spec.has_seed) request.sampling.seed = DrawRandom();
  request.stop.max_new_tokens = static_cast<int32_t>(max_new_tokens);
  if (!spec.ignore_eos) request.stop.end_ids = parts_.text.end_ids;
  request.stop.min_new_tokens = spec.sampling.min_new_tokens;
  request.stop.stop_ids = spec.stop_ids;
  request.stop.stop_strings = spec.stop_strings;
  request.stop.include_stop_string = spec.include_stop_string;
  request.priority = spec.priority;
  request.first_token_deadline_ns = DeadlineAt(request.arrival_ns, spec.first_token_timeout_ns);
  request.completion_deadline_ns = DeadlineAt(request.arrival_ns, spec.completion_timeout_ns);
  request.long_rope = options_.long_rope_above > 0 && prompt_tokens > options_.long_rope_above;
  if (spec.generates()) {  // nothing else has gaps
    request.token_gap_target_ns =
        spec.token_gap_target_ns != 0 ? spec.token_gap_target_ns : options_.token_gap_target_ns;
  }
  request.cache_salt = spec.cache_salt;
  request.session_id = spec.session_id;
  request.trace_id = spec.trace_id;
  request.request_class = spec.request_class;
  request.use_prefix_cache = spec.use_prefix_cache;
  request.num_prompt_logprobs = std::min(spec.num_prompt_logprobs, parts_.text.vocab_size);
  LLM_RETURN_IF_ERROR(CheckDeadlines(&request));
  if (spec.transfer != nullptr) LLM_RETURN_IF_ERROR(PrepareTransfer(spec, &request));
  return request;
}

// In the middle of a text a word stands behind a space, which most vocabularies keep in its first
// token: both ways of writing it are bad.
absl::Status Engine::TokenizeBadWords(const RequestSpec& spec, SamplingParams* sampling) const {
  EncodeOptions encode;
  encode.add_special = false;
  for (const std::string& word : spec.bad_words) {
    for (const char* space : {"", " "}) {
      LLM_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                           parts_.text.tokenizer->Encode(absl::StrCat(space, word), encode));
      const bool inside = std::all_of(ids.begin(), ids.end(), [this](int32_t id) {
        return id >= 0 && id < parts_.text.vocab_size;
      });
      if (inside && !ids.empty()) sampling->bad_words.push_back(std::move(ids));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int32_t>> Engine::Tokenize(const RequestSpec& spec,
                                                      QueuePlace* place) const {
  if (spec.prompt_kind == PromptKind::kIds) {
    return std::vector<int32_t>(spec.prompt_ids.begin(), spec.prompt_ids.end());
  }
  EncodeOptions encode;
  encode.parse_special = spec.parse_special;
  RenderedChat rendered;
  absl::string_view text = spec.text;
  if (spec.prompt_kind == PromptKind::kChat) {
    if (spec.parse_special && spec.literal_content) {
      LLM_ASSIGN_OR_RETURN(rendered, RenderMarkedChat(parts_.text, spec.text));
    } else {
      LLM_ASSIGN_OR_RETURN(rendered.text, RenderChat(parts_.text, spec.text));
    }
    LLM_RETURN_IF_ERROR(place->Resize(TokenBound(spec, rendered.text.size())));
    text = rendered.text;
    encode.literal = rendered.literal;
    encode.add_special = false;  // the template writes them itself
  }
  LLM_ASSIGN_OR_RETURN(std::vector<int32_t> ids, parts_.text.tokenizer->Encode(text, encode));
  if (ids.empty()) return absl::InvalidArgumentError("prompt: the text has no tokens");
  for (const int32_t id : ids) {
    if (id < 0 || id >= parts_.text.vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat(
          "prompt: token ", id, " is outside the model's vocabulary of ", parts_.text.vocab_size));
    }
  }
  LLM_RETURN_IF_ERROR(CheckQueueable(spec, ids.size(), queue_.usage()->bounds()));
  LLM_RETURN_IF_ERROR(place->Resize(static_cast<int64_t>(ids.size()) * spec.choices));
  return ids;
}

std::shared_ptr<Outbox> Engine::MakeOutbox(const RequestSpec& spec) const {
  auto outbox = std::make_shared<Outbox>();
  outbox->user_data = spec.user_data;
  outbox->handler = spec.handler;
  outbox->waker = queue_.waker();
  if (spec.sampling.num_logprobs >= 0) {
    outbox->logprobs_per_token = 1 + std::min(spec.sampling.num_logprobs, parts_.text.vocab_size);
  }
  if (spec.num_prompt_logprobs >= 0) {
    outbox->prompt_logprobs_per_token =
        1 + std::min(spec.num_prompt_logprobs, parts_.text.vocab_size);
  }
  outbox->message.reserve(kMessageBytes);
  return outbox;
}

}  // namespace llm
