// Older files name no end-of-turn token, so well-known spellings among the control tokens count as
// well.
#include "src/engine/end_ids.h"

#include <set>

#include "src/engine/tokenizer_to_gguf.h"

namespace llm {

std::vector<int32_t> EndIds(const Metadata& metadata, const Tokenizer& tokenizer) {
  std::set<int32_t> ids;
  const auto add = [&](int64_t id) {
    if (id >= 0 && id < tokenizer.vocab_size()) ids.insert(static_cast<int32_t>(id));
  };
  add(tokenizer.eos_id());
  for (const char* key : {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    const absl::StatusOr<int64_t> id = metadata.GetInt(key);
    if (id.ok()) add(*id);
  }
  if (const auto named = metadata.GetInts(kEndIdsKey); named.ok()) {
    for (const int64_t id : *named) add(id);
  }
  for (const char* text : {"<end_of_turn>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>"}) {
    const int32_t id = tokenizer.FindToken(text);
    if (id >= 0 && tokenizer.IsControl(id)) add(id);
  }
  return std::vector<int32_t>(ids.begin(), ids.end());
}

}  // namespace llm
