// Checks what can be checked without tokenizing.
#include "src/engine/request_spec.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/choices.h"

namespace llm {
namespace {

absl::Status Invalid(absl::string_view field, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", why));
}

absl::Status CheckIds(absl::string_view field, absl::Span<const int32_t> ids, int32_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size) {
      return Invalid(field, absl::StrCat("id ", ids[i], " at ", i, " is outside the vocabulary of ",
                                         vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckPrompt(const RequestSpec& spec, int32_t vocab_size) {
  switch (spec.prompt_kind) {
    case PromptKind::kNone:
      return Invalid("prompt", "one of text, chat and prompt_ids must be set");
    case PromptKind::kText:
      return spec.text.empty() ? Invalid("text", "empty") : absl::OkStatus();
    case PromptKind::kChat:
      return spec.text.empty() ? Invalid("chat", "empty") : absl::OkStatus();
    case PromptKind::kIds:
      if (spec.prompt_ids.empty()) return Invalid("prompt_ids", "empty");
      return CheckIds("prompt_ids", spec.prompt_ids, vocab_size);
  }
  return Invalid("prompt", "unknown kind");
}

// Written as "not inside", so that NaN fails.
bool IsFraction(float value) { return value >= 0.0f && value <= 1.0f; }

bool IsPenalty(float value) { return value >= -2.0f && value <= 2.0f; }

absl::Status CheckBias(const std::vector<LogitBias>& biases, int32_t vocab_size) {
  for (size_t i = 0; i < biases.size(); ++i) {
    const LogitBias& bias = biases[i];
    if (!(bias.bias >= -1e6f && bias.bias <= 1e6f)) {
      return Invalid("logit_bias", absl::StrCat(bias.bias, " at ", i, " is outside [-1e6, 1e6]"));
    }
    LLM_RETURN_IF_ERROR(CheckIds("logit_bias", absl::MakeConstSpan(&bias.id, 1), vocab_size));
  }
  return absl::OkStatus();
}

absl::Status CheckSampling(const SamplingParams& sampling) {
  if (!(sampling.temperature >= 0.0f) || std::isinf(sampling.temperature)) {
    return Invalid("temperature",
                   absl::StrCat(sampling.temperature, " is not a finite number >= 0"));
  }
  if (sampling.top_k < 0) return Invalid("top_k", absl::StrCat(sampling.top_k, " is negative"));
  if (!IsFraction(sampling.top_p)) {
    return Invalid("top_p", absl::StrCat(sampling.top_p, " is outside [0, 1]"));
  }
  if (!IsFraction(sampling.min_p)) {
    return Invalid("min_p", absl::StrCat(sampling.min_p, " is outside [0, 1]"));
  }
  const float repetition = sampling.repetition_penalty;
  if (!(repetition >= 0.01f && repetition <= 100.0f)) {
    return Invalid("repetition_penalty", absl::StrCat(repetition, " is outside [0.01, 100]"));
  }
  if (!IsPenalty(sampling.presence_penalty)) {
    return Invalid("presence_penalty",
                   absl::StrCat(sampling.presence_penalty, " is outside [-2, 2]"));
  }
  if (!IsPenalty(sampling.frequency_penalty)) {
    return Invalid("frequency_penalty",
                   absl::StrCat(sampling.frequency_penalty, " is outside [-2, 2]"));
  }
  if (sampling.num_logprobs < -1 || sampling.num_logprobs > 20) {
    return Invalid("num_logprobs", absl::StrCat(sampling.num_logprobs, " is outside [0, 20]"));
  }
  return absl::OkStatus();
}

absl::Status CheckPromptLogprobs(int32_t count) {
  if (count >= -1 && count <= 20) return absl::OkStatus();
  return Invalid("num_prompt_logprobs", absl::StrCat(count, " is outside [0, 20]"));
}

}  // namespace

RequestSpec RequestOf(const TextSpec& text) {
  RequestSpec spec;
  spec.prompt_kind = text.prompt_kind;
  spec.text = text.text;
  spec.prompt_ids = text.ids;
  spec.parse_special = text.parse_special;
  spec.priority = text.priority;
  return spec;
}

absl::Status ValidateSpec(const RequestSpec& spec, const ModelText& model) {
  LLM_RETURN_IF_ERROR(CheckPrompt(spec, model.vocab_size));
  LLM_RETURN_IF_ERROR(CheckSampling(spec.sampling));
  LLM_RETURN_IF_ERROR(CheckPromptLogprobs(spec.num_prompt_logprobs));
  LLM_RETURN_IF_ERROR(CheckBias(spec.sampling.logit_bias, model.vocab_size));
  LLM_RETURN_IF_ERROR(CheckIds("stop_ids", spec.stop_ids, model.vocab_size));
  for (size_t i = 0; i < spec.stop_strings.size(); ++i) {
    if (spec.stop_strings[i].empty()) return Invalid("stop_strings", absl::StrCat(i, " is empty"));
  }
  for (size_t i = 0; i < spec.bad_words.size(); ++i) {
    if (spec.bad_words[i].empty()) return Invalid("bad_words", absl::StrCat(i, " is empty"));
  }
  if (spec.choices < 1 || spec.choices > kMaxChoices) {
    return Invalid("choices", absl::StrCat(spec.choices, " is outside [1, ", kMaxChoices, "]"));
  }
  if (spec.max_new_tokens < 0) return Invalid("max_new_tokens", "negative");
  if (spec.first_token_timeout_ns < 0) return Invalid("first_token_deadline_ns", "negative");
  if (spec.completion_timeout_ns < 0) return Invalid("completion_deadline_ns", "negative");
  if (spec.token_gap_target_ns < 0) return Invalid("token_gap_target_ns", "negative");
  return absl::OkStatus();
}

}  // namespace llm
