// What a caller asks for, before it is checked and tokenized.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/engine/completion_queue.h"
#include "src/engine/events.h"
#include "src/engine/model_text.h"
#include "src/sequence/request.h"

namespace llm {

class EmbedSink;
class ScoreSink;
struct PinTicket;
struct PrefixTransfer;

enum class PromptKind { kNone, kText, kChat, kIds };

struct RequestSpec {
  PromptKind prompt_kind = PromptKind::kNone;
  absl::string_view text;                // kText, kChat; borrowed during submit
  absl::Span<const int32_t> prompt_ids;  // kIds; likewise
  bool parse_special = false;
  bool literal_content = true;  // kChat: control tokens spelled by its data stay text all the same
  int32_t choices = 1;          // answers to the prompt
  int32_t max_new_tokens = 0;   // 0: as many as the context holds
  SamplingParams sampling;
  bool has_seed = false;
  bool ignore_eos = false;
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop_strings;
  bool include_stop_string = false;
  std::vector<std::string> bad_words;  // tokenized into sampling.bad_words
  bool render_special = false;
  bool use_prefix_cache = true;
  int32_t num_prompt_logprobs = -1;  // as of Request
  int32_t priority = 0;
  int64_t first_token_timeout_ns = 0;  // from submit; 0: none
  int64_t completion_timeout_ns = 0;
  int64_t token_gap_target_ns = 0;  // 0: the engine's
  int64_t arrival_ns = 0;           // of a simulated engine, on its clock; 0: now
  std::string cache_salt;
  uint64_t session_id = 0;
  uint64_t trace_id = 0;
  uint32_t request_class = 0;
  EventHandler handler;                    // call != nullptr: events go there, else to
  std::shared_ptr<CompletionQueue> queue;  // this; null: the engine's
  void* user_data = nullptr;
  // At most one of the three is set: the prompt is scored, embedded or pinned, and nothing
  // generated.
  std::shared_ptr<ScoreSink> score;
  std::shared_ptr<EmbedSink> embed;
  std::shared_ptr<PinTicket> pin;
  std::shared_ptr<PrefixTransfer>
      transfer;  // likewise, saved or restored; restored ones may be pinned

  // Draws tokens, as none of those does.
  bool generates() const {
    return score == nullptr && embed == nullptr && pin == nullptr && transfer == nullptr;
  }
};

// A text that is computed and not continued.
struct TextSpec {
  PromptKind prompt_kind = PromptKind::kNone;  // not kChat
  absl::string_view text;                      // kText
  absl::Span<const int32_t> ids;               // kIds
  bool parse_special = false;
  int32_t priority = 0;
};

RequestSpec RequestOf(const TextSpec& text);

// INVALID_ARGUMENT naming the field, as llm_request calls it.
absl::Status ValidateSpec(const RequestSpec& spec, const ModelText& model);

}  // namespace llm
