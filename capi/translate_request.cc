// Reads the caller's request once; ranges of values are the engine's to check.
#include "capi/translate_request.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "absl/strings/str_cat.h"
#include "capi/handles.h"
#include "capi/strings.h"
#include "capi/translate_event.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status CheckReserved(const llm_request& c) {
  const char* field = nullptr;
  if (c.adapter_id != 0) field = "adapter_id";
  if (c.reserved != 0) field = "reserved";
  if (c.reserved2 != 0) field = "reserved2";
  if (c.reserved3 != 0) field = "reserved3";
  if (c.reserved4 != 0) field = "reserved4";
  if (c.kv_transfer.data != nullptr || c.kv_transfer.size != 0) field = "kv_transfer";
  constexpr uint64_t kSet = LLM_SET_SEED | LLM_SET_NUM_LOGPROBS | LLM_SET_NUM_PROMPT_LOGPROBS;
  if ((c.set & ~kSet) != 0) field = "set";
  if (field == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(field, ": reserved for a later version"));
}

absl::Status TranslatePrompt(const llm_request& c, RequestSpec* spec) {
  LLM_RETURN_IF_ERROR(CheckArray("text", c.text.data, c.text.size));
  LLM_RETURN_IF_ERROR(CheckArray("chat", c.chat.data, c.chat.size));
  LLM_RETURN_IF_ERROR(CheckArray("prompt_ids", c.prompt_ids, c.num_prompt_ids));
  bool has_text = c.text.size != 0;
  bool has_chat = c.chat.size != 0;
  bool has_ids = c.num_prompt_ids != 0;
  if (has_text + has_chat + has_ids > 1) {
    return absl::InvalidArgumentError("prompt: more than one of text, chat and prompt_ids is set");
  }
  if (!has_text && !has_chat && !has_ids) {
    // A pointer alone is a prompt that came out empty, which the engine refuses by its name.
    has_text = c.text.data != nullptr;
    has_chat = !has_text && c.chat.data != nullptr;
    has_ids = !has_text && !has_chat && c.prompt_ids != nullptr;
  }
  if (has_ids) {
    spec->prompt_kind = PromptKind::kIds;
    spec->prompt_ids = absl::MakeConstSpan(c.prompt_ids, c.num_prompt_ids);
  } else if (has_text || has_chat) {
    spec->prompt_kind = has_text ? PromptKind::kText : PromptKind::kChat;
    spec->text = FromC(has_text ? c.text : c.chat);
  }
  LLM_RETURN_IF_ERROR(
      ReadSwitch("literal_content", c.literal_content, true, &spec->literal_content));
  return ReadSwitch("parse_special", c.parse_special, has_chat, &spec->parse_special);
}

absl::Status CopyStrings(absl::string_view name, const llm_string* from, size_t count,
                         std::vector<std::string>* to) {
  LLM_RETURN_IF_ERROR(CheckArray(name, from, count));
  to->reserve(count);
  for (size_t i = 0; i < count; ++i) {
    LLM_RETURN_IF_ERROR(CheckArray(name, from[i].data, from[i].size));
    to->emplace_back(FromC(from[i]));
  }
  return absl::OkStatus();
}

absl::Status TranslateStops(const llm_request& c, RequestSpec* spec) {
  LLM_RETURN_IF_ERROR(CheckArray("stop_ids", c.stop_ids, c.num_stop_ids));
  spec->stop_ids.assign(c.stop_ids, c.stop_ids + c.num_stop_ids);
  LLM_RETURN_IF_ERROR(
      CopyStrings("stop_strings", c.stop_strings, c.num_stop_strings, &spec->stop_strings));
  LLM_RETURN_IF_ERROR(CopyStrings("bad_words", c.bad_words, c.num_bad_words, &spec->bad_words));
  LLM_RETURN_IF_ERROR(ReadSwitch("ignore_eos", c.ignore_eos, false, &spec->ignore_eos));
  LLM_RETURN_IF_ERROR(ReadSwitch("render_special", c.render_special, false, &spec->render_special));
  return ReadSwitch("include_stop_string", c.include_stop_string, false,
                    &spec->include_stop_string);
}

// -1, which means none inside, is nobody's wish.
absl::Status ReadLogprobs(absl::string_view field, bool set, int32_t value, int32_t* count) {
  *count = set || value != 0 ? value : -1;
  if (value >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", value, " is outside [0, 20]"));
}

absl::Status TranslateSampling(const llm_request& c, RequestSpec* spec) {
  spec->sampling.temperature = c.temperature;
  spec->sampling.top_k = c.top_k;
  spec->sampling.top_p = c.top_p == 0.0f ? 1.0f : c.top_p;
  spec->sampling.min_p = c.min_p;
  spec->has_seed = (c.set & LLM_SET_SEED) != 0 || c.seed != 0;
  spec->sampling.seed = c.seed;
  LLM_RETURN_IF_ERROR(ReadLogprobs("num_logprobs", (c.set & LLM_SET_NUM_LOGPROBS) != 0,
                                   c.num_logprobs, &spec->sampling.num_logprobs));
  return ReadLogprobs("num_prompt_logprobs", (c.set & LLM_SET_NUM_PROMPT_LOGPROBS) != 0,
                      c.num_prompt_logprobs, &spec->num_prompt_logprobs);
}

int32_t Clamp(uint32_t value) {
  return static_cast<int32_t>(std::min<uint32_t>(value, std::numeric_limits<int32_t>::max()));
}

absl::Status TranslateAdjustments(const llm_request& c, SamplingParams* sampling) {
  sampling->repetition_penalty = c.repetition_penalty == 0.0f ? 1.0f : c.repetition_penalty;
  sampling->presence_penalty = c.presence_penalty;
  sampling->frequency_penalty = c.frequency_penalty;
  sampling->min_new_tokens = Clamp(c.min_new_tokens);
  LLM_RETURN_IF_ERROR(CheckArray("logit_bias", c.logit_bias, c.num_logit_bias));
  if (c.num_logit_bias == 0) return absl::OkStatus();
  const size_t stride = c.logit_bias_size;
  if (stride < sizeof(llm_logit_bias) || stride % alignof(llm_logit_bias) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("logit_bias_size: ", stride, ", expected ", sizeof(llm_logit_bias)));
  }
  sampling->logit_bias.reserve(c.num_logit_bias);
  const char* at = reinterpret_cast<const char*>(c.logit_bias);
  for (size_t i = 0; i < c.num_logit_bias; ++i, at += stride) {
    llm_logit_bias bias;
    std::memcpy(&bias, at, sizeof(bias));
    LLM_RETURN_IF_ERROR(CheckUnknownBytes("logit_bias", at + sizeof(bias), stride - sizeof(bias)));
    sampling->logit_bias.push_back({bias.id, bias.bias});
  }
  return absl::OkStatus();
}

absl::Status TranslateDelivery(const llm_request& c, RequestSpec* spec) {
  spec->user_data = c.user_data;
  if (c.on_event != nullptr && c.queue != nullptr) {
    return absl::InvalidArgumentError("queue: set beside on_event; events go to one of them");
  }
  if (c.on_event != nullptr) spec->handler = MakeHandler(c.on_event);
  if (c.queue != nullptr) spec->queue = c.queue->queue;
  return absl::OkStatus();
}

}  // namespace

absl::Status TranslateRequest(const llm_request* given, RequestSpec* spec) {
  llm_request c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_request", given, &c));
  LLM_RETURN_IF_ERROR(CheckLeastSize("llm_request", c.struct_size,
                                     offsetof(llm_request, parse_special), "the prompt"));
  LLM_RETURN_IF_ERROR(CheckReserved(c));
  LLM_RETURN_IF_ERROR(TranslatePrompt(c, spec));
  LLM_RETURN_IF_ERROR(TranslateStops(c, spec));
  LLM_RETURN_IF_ERROR(TranslateSampling(c, spec));
  LLM_RETURN_IF_ERROR(TranslateAdjustments(c, &spec->sampling));
  LLM_RETURN_IF_ERROR(TranslateDelivery(c, spec));
  LLM_RETURN_IF_ERROR(CheckArray("cache_salt", c.cache_salt.data, c.cache_salt.size));
  LLM_RETURN_IF_ERROR(ReadSwitch("prefix_cache", c.prefix_cache, true, &spec->use_prefix_cache));
  spec->choices = std::max(1, Clamp(c.choices));
  spec->max_new_tokens = Clamp(c.max_new_tokens);
  spec->priority = c.priority;
  spec->first_token_timeout_ns = c.first_token_deadline_ns;
  spec->completion_timeout_ns = c.completion_deadline_ns;
  spec->token_gap_target_ns = c.token_gap_target_ns;
  spec->arrival_ns = c.arrival_ns;
  spec->cache_salt = std::string(FromC(c.cache_salt));
  spec->session_id = c.session_id;
  spec->trace_id = c.trace_id;
  spec->request_class = c.request_class;
  return absl::OkStatus();
}

}  // namespace llm
