// llm_prefix_pin and llm_prefix_unpin through the C ABI.
#include <gmock/gmock.h>

#include "tests/abi/abi_fixture.h"

namespace llm {
namespace {

using testing::HasSubstr;

class AbiPrefixTest : public AbiTest {
 protected:
  // A context of 8 blocks in 12: pins may take 4.
  void OpenSmall(uint32_t prefix_cache = LLM_ON) {
    llm_engine_options options = EngineOptions(LLM_DRIVE_MANUAL);
    options.kv_tokens = 192;
    options.max_context_tokens = 128;
    options.prefix_cache = prefix_cache;
    ASSERT_EQ(llm_engine_open(model_, &options, &engine_), LLM_OK) << llm_last_error();
  }
  static llm_prefix Prefix(const std::vector<int32_t>& ids) {
    llm_prefix prefix;
    llm_prefix_init(&prefix);
    prefix.prompt_ids = ids.data();
    prefix.num_prompt_ids = ids.size();
    return prefix;
  }
  int32_t CachedTokens(const std::vector<int32_t>& ids) {
    const llm_request request = Request(ids);
    llm_request_id id = 0;
    EXPECT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
    RunAll();
    return Poll().back().stats->cached_tokens;
  }
  uint64_t PinnedBlocks() {
    llm_metrics_snapshot metrics;
    llm_metrics_snapshot_init(&metrics);
    EXPECT_EQ(llm_metrics(engine_, &metrics), LLM_OK);
    EXPECT_EQ(
        metrics.total_blocks_current,
        metrics.free_blocks_current + metrics.held_blocks_current + metrics.cached_blocks_current);
    EXPECT_LE(metrics.pinned_blocks_current, metrics.held_blocks_current);
    return metrics.pinned_blocks_current;
  }

  const std::vector<int32_t> prefix_ = std::vector<int32_t>(50, 7);
};

TEST_F(AbiPrefixTest, APinnedPrefixOutlivesEvictionAndFlushUntilItIsUnpinned) {
  OpenSmall();
  const llm_prefix prefix = Prefix(prefix_);
  llm_pin_id pin = 0;
  ASSERT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_OK) << llm_last_error();
  EXPECT_NE(pin, 0u);
  EXPECT_EQ(PinnedBlocks(), 3u);
  for (int32_t id = 10; id < 14; ++id) CachedTokens(std::vector<int32_t>(100, id));
  EXPECT_EQ(llm_cache_flush(engine_), LLM_OK);
  EXPECT_EQ(CachedTokens(prefix_), 48);
  EXPECT_EQ(llm_prefix_unpin(engine_, pin), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(PinnedBlocks(), 0u);
  EXPECT_EQ(llm_prefix_unpin(engine_, pin), LLM_NOT_FOUND);
  EXPECT_EQ(llm_cache_flush(engine_), LLM_OK);
  EXPECT_EQ(CachedTokens(prefix_), 0);
}

TEST_F(AbiPrefixTest, APinBeyondTheBoundIsRefusedWithTheNumbers) {
  OpenSmall();
  const std::vector<int32_t> ids(80, 7);
  const llm_prefix prefix = Prefix(ids);
  llm_pin_id pin = 99;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_RESOURCE_EXHAUSTED);
  EXPECT_EQ(pin, 99u);
  EXPECT_THAT(llm_last_error(), HasSubstr("80 tokens need 5 blocks of kv group 0; a request of 128 "
                                          "tokens leaves 4 of 12"));
}

TEST_F(AbiPrefixTest, BadArgumentsAreNamed) {
  OpenSmall();
  llm_prefix prefix = Prefix(prefix_);
  llm_pin_id pin = 0;
  EXPECT_EQ(llm_prefix_pin(nullptr, &prefix, &pin), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_pin(engine_, nullptr, &pin), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, nullptr), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_unpin(nullptr, 1), LLM_INVALID_ARGUMENT);
  EXPECT_EQ(llm_prefix_unpin(engine_, 1), LLM_NOT_FOUND);
  prefix.num_prompt_ids = 15;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_INVALID_ARGUMENT);
  EXPECT_THAT(llm_last_error(), HasSubstr("15 tokens are less than a block of 16"));
  prefix.text = Str("both");
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_INVALID_ARGUMENT);
  prefix = Prefix(prefix_);
  prefix.adapter_id = 1;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_UNIMPLEMENTED);
  EXPECT_EQ(llm_engine_shutdown(engine_, 0), LLM_OK);
  prefix.adapter_id = 0;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_FAILED_PRECONDITION);
  EXPECT_EQ(llm_prefix_unpin(engine_, 1), LLM_FAILED_PRECONDITION);
}

TEST_F(AbiPrefixTest, AnEngineWithoutPrefixCachePinsNothing) {
  OpenSmall(LLM_OFF);
  const llm_prefix prefix = Prefix(prefix_);
  llm_pin_id pin = 0;
  EXPECT_EQ(llm_prefix_pin(engine_, &prefix, &pin), LLM_FAILED_PRECONDITION);
}

struct PinInCallback {
  llm_engine* engine;
  llm_prefix prefix;
  llm_status status;
};

void PinFromCallback(void* user_data, const llm_event* event) {
  if (event->type != LLM_EVENT_FINISHED) return;
  auto* pin = static_cast<PinInCallback*>(user_data);
  llm_pin_id id = 0;
  pin->status = llm_prefix_pin(pin->engine, &pin->prefix, &id);
}

TEST_F(AbiPrefixTest, IsRefusedInsideAStepOfTheEngine) {
  OpenSmall();
  PinInCallback pin = {engine_, Prefix(prefix_), LLM_OK};
  llm_request request = Request(prefix_);
  request.on_event = &PinFromCallback;
  request.user_data = &pin;
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine_, &request, &id), LLM_OK) << llm_last_error();
  RunAll();
  EXPECT_EQ(pin.status, LLM_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace llm
