// A host that rounds otherwise and flushes denormals gets the same answer, and its own state back.
#include <gtest/gtest.h>

#include "src/engine/open_engine.h"
#include "tests/engine/engine_harness.h"

#if defined(__SSE__)
#include <xmmintrin.h>

namespace llm {
namespace {

Received Generate(unsigned mxcsr) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(mxcsr);
  ModelOptions model_options;
  model_options.num_threads = 2;
  const auto model =
      LoadedModel::Open(INLAY_TEST_DATA "/gguf/llama_h64-F16.gguf", model_options).value();
  OpenOptions options;
  options.manual = true;
  options.num_threads = 2;
  options.max_context_tokens = 64;
  options.max_step_tokens = 16;
  const auto engine = OpenEngine(model, options).value();
  const std::vector<int32_t> prompt = {9, 8, 7, 6};
  RequestSpec spec;
  spec.prompt_kind = PromptKind::kIds;
  spec.prompt_ids = prompt;
  spec.max_new_tokens = 12;
  spec.ignore_eos = true;
  spec.sampling.temperature = 1.0f;
  spec.sampling.num_logprobs = 3;
  spec.has_seed = true;
  uint64_t id = 0;
  EXPECT_TRUE(engine->Submit(spec, &id).ok());
  while (engine->Step().value()) {
  }
  EXPECT_EQ(_mm_getcsr() & ~0x3fu, mxcsr & ~0x3fu) << "the host's state (but for sticky flags)";
  _mm_setcsr(before);
  Received received;
  const auto receive = [&](size_t, const Event& event) { received.Add(event); };
  EXPECT_TRUE(engine->queue()->Poll(64, 0, receive).ok());
  EXPECT_TRUE(engine->Close().ok());
  return received;
}

TEST(FloatStateTest, RoundingAndDenormalsOfTheHostDoNotChangeTheAnswer) {
  const Received usual = Generate(0x1f80);
  ASSERT_EQ(usual.ids.size(), 12u);
  constexpr unsigned kTowardsZero = 0x6000, kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const Received odd = Generate(0x1f80 | kTowardsZero | kFlushToZero | kDenormalsAreZero);
  EXPECT_EQ(odd.ids, usual.ids);
  ASSERT_EQ(odd.logprobs.size(), usual.logprobs.size());
  for (size_t i = 0; i < usual.logprobs.size(); ++i) {
    EXPECT_EQ(odd.logprobs[i].logprob, usual.logprobs[i].logprob);
  }
}

}  // namespace
}  // namespace llm
#endif
