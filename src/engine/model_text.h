// What an engine needs of a model beside its weights: text to ids and back, and where an answer
// ends.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/chat_template.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

// Borrowed from the model, which outlives it. Safe from any thread.
struct ModelText {
  const Tokenizer* tokenizer = nullptr;
  const ChatTemplate* chat_template = nullptr;  // null: the model has none that can be used
  std::string chat_template_error;              // why not; empty: its file has none
  int32_t vocab_size = 0;                       // of the logits; ids are below it
  int32_t hidden_size = 0;                      // of an embedding
  std::vector<int32_t> end_ids;
};

// Renders `chat` (JSON: an array of messages, or an object with "messages" and more variables) by
// the model's template. FAILED_PRECONDITION: no template; INVALID_ARGUMENT: bad JSON, or the
// template refuses it.
absl::StatusOr<std::string> RenderChat(const ModelText& model, absl::string_view chat);
// The same, and which parts came out of the chat's data.
absl::StatusOr<RenderedChat> RenderMarkedChat(const ModelText& model, absl::string_view chat);

}  // namespace llm
