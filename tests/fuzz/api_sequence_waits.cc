// The calls that wait: in manual drive they run the steps, callbacks of others included.
#include <filesystem>

#include "tests/fuzz/api_sequence_run.h"

namespace llm {
namespace {

llm_prefix PrefixOf(const std::vector<int32_t>& ids) {
  llm_prefix prefix = Made(llm_prefix_init);
  prefix.prompt_ids = ids.data();
  prefix.num_prompt_ids = ids.size();
  return prefix;
}

}  // namespace

llm_status World::Score(SequenceEngine* slot) {
  const std::vector<int32_t> ids = SequencePrompt(bytes_.Below(kNumPrompts));
  std::array<float, 128> values{};
  size_t count = 0;
  llm_score_request request = Made(llm_score_request_init);
  request.ids = ids.data();
  request.num_ids = ids.size();
  request.first = 1 + bytes_.Below(3);
  return llm_score(slot->engine, &request, values.data(), values.size(), &count);
}

llm_status World::Embed(SequenceEngine* slot) {
  const std::vector<int32_t> ids = SequencePrompt(bytes_.Below(kNumPrompts));
  std::array<float, 128> values{};
  size_t count = 0;
  llm_embed_request request = Made(llm_embed_request_init);
  request.ids = ids.data();
  request.num_ids = ids.size();
  request.pooling = bytes_.Below(4);
  const llm_status status = llm_embed(slot->engine, &request, values.data(), values.size(), &count);
  SEQUENCE_CHECK(status != LLM_OK || count == 64);
  return status;
}

llm_status World::Pin(SequenceEngine* slot) {
  const std::vector<int32_t> ids = SequencePrompt(bytes_.Below(kNumPrompts));
  const llm_prefix prefix = PrefixOf(ids);
  llm_pin_id pin = 0;
  const llm_status status = llm_prefix_pin(slot->engine, &prefix, &pin);
  SEQUENCE_CHECK((status == LLM_OK) == (pin != 0));
  if (pin != 0) slot->pins.push_back(pin);
  return status;
}

llm_status World::Save(SequenceEngine* slot) {
  const std::vector<int32_t> ids = SequencePrompt(bytes_.Below(kNumPrompts));
  const llm_prefix prefix = PrefixOf(ids);
  const std::string path = SequencePath();
  const llm_status status = llm_prefix_save(slot->engine, &prefix, path.data(), path.size());
  if (status == LLM_OK) damaged_ = false;  // whole, or not there
  return status;
}

llm_status World::Load(SequenceEngine* slot) {
  const std::string path = SequencePath();
  const bool was_damaged = damaged_;
  size_t num_tokens = 0;
  llm_pin_id pin = 0;
  const bool pinned = bytes_.Below(3) == 0;
  const llm_status status = llm_prefix_load(slot->engine, path.data(), path.size(), nullptr,
                                            &num_tokens, pinned ? &pin : nullptr);
  if (status == LLM_OK) {
    SEQUENCE_CHECK(!was_damaged);
    SEQUENCE_CHECK(num_tokens > 0 && num_tokens % 16 == 0 && pinned == (pin != 0));
  }
  if (pin != 0) slot->pins.push_back(pin);
  return status;
}

// Cut by a byte, which no later damage mends.
void World::Damage() {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(SequencePath(), error);
  if (error || size == 0) return;
  std::filesystem::resize_file(SequencePath(), size - 1, error);
  damaged_ |= !error;
}

void World::Wait(SequenceEngine* slot, Call call) {
  llm_metrics_snapshot before = Made(llm_metrics_snapshot_init);
  SEQUENCE_CHECK(llm_metrics(slot->engine, &before) == LLM_OK);
  static constexpr llm_status (World::*kCalls[])(SequenceEngine*) = {
      &World::Score, &World::Embed, &World::Pin, &World::Save, &World::Load};
  ++slot->waiting;  // where callbacks look, it was taken in
  const llm_status status = (this->*kCalls[static_cast<size_t>(call)])(slot);
  --slot->waiting;
  // Whether it was taken in before it failed shows in the counters alone.
  llm_metrics_snapshot after = Made(llm_metrics_snapshot_init);
  SEQUENCE_CHECK(llm_metrics(slot->engine, &after) == LLM_OK);
  slot->submitted = after.submitted_requests_total - slot->waiting;
  slot->refused = after.rejected_requests_total;
  SEQUENCE_CHECK(status != LLM_OK ||
                 after.submitted_requests_total > before.submitted_requests_total);
}

}  // namespace llm
