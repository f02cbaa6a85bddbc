// Steps of decodes through graphs give the bits of steps that are launched op by op.
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/tensor/float_convert.h"
#include "tests/cuda_on_cpu/gpu_test_util.h"
#include "tests/support/model_harness.h"
#include "tests/support/random_model.h"

namespace llm {
namespace {

std::vector<int32_t> Prompt(int length, int32_t seed) {
  std::vector<int32_t> tokens;
  for (int i = 0; i < length; ++i) tokens.push_back((seed + i * i * 31 + i * 7) % 160);
  return tokens;
}

// The same model twice: with graphs, and without.
class DecodeGraphsTest : public GpuTest {
 protected:
  // Sequences of both, with the same tokens.
  struct Pair {
    std::unique_ptr<Sequence> with;
    std::unique_ptr<Sequence> without;
  };

  void Open(const std::string& architecture, HarnessOptions options = {}) {
    const RandomModelOptions model = {
        .architecture = architecture,
        .format = architecture == "gpt-oss" ? WeightFormat::kMXFP4 : WeightFormat::kQ4_1};
    const FakeWeightSource source = RandomModel(model);
    options.kernels = *FindCudaKernels();
    options.kv_dtype = DType::kF16;
    options.float_activations = false;
    for (const bool graphs : {true, false}) {
      options.graphs = graphs;
      auto harness = ModelHarness::Create(source, options);
      ASSERT_TRUE(harness.ok()) << harness.status();
      (graphs ? with_ : without_) = *std::move(harness);
    }
  }
  Pair NewPair(const std::vector<int32_t>& tokens) {
    const auto size = static_cast<int>(tokens.size());
    return {with_->NewSequence(tokens, size), without_->NewSequence(tokens, size)};
  }
  // One step of both; their logits must be the same.
  struct Chunk {
    const Pair* pair;
    int32_t begin;
    int32_t length = 1;
  };
  void Step(const std::vector<Chunk>& chunks) {
    const auto run = [&](ModelHarness* harness, std::unique_ptr<Sequence> Pair::*sequence) {
      std::vector<ScheduledChunk> scheduled;
      for (const Chunk& c : chunks) {
        scheduled.push_back({(c.pair->*sequence).get(), c.begin, c.length, 1});
      }
      auto logits = harness->Run(scheduled);
      EXPECT_TRUE(logits.ok()) << logits.status();
      return logits.ok() ? *std::move(logits) : std::vector<float>();
    };
    const std::vector<float> actual = run(with_.get(), &Pair::with);
    const std::vector<float> expected = run(without_.get(), &Pair::without);
    ASSERT_EQ(actual.size(), chunks.size() * 160);
    for (const float logit : expected) ASSERT_TRUE(std::isfinite(logit));
    ASSERT_EQ(expected.size(), actual.size());
    EXPECT_EQ(std::memcmp(actual.data(), expected.data(), actual.size() * sizeof(float)), 0);
  }
  GraphCounters counters() const { return with_->runner().graphs(); }

  std::unique_ptr<ModelHarness> with_, without_;
};

class DecodeGraphsOfTest : public DecodeGraphsTest,
                           public testing::WithParamInterface<const char*> {};

// One row, four, three and two that are filled up, and a prompt in between.
TEST_P(DecodeGraphsOfTest, RowsThatJoinAndLeaveHaveTheBitsOfPlainLaunches) {
  Open(GetParam());
  const Pair a = NewPair(Prompt(30, 1)), b = NewPair(Prompt(35, 2)), c = NewPair(Prompt(28, 5)),
             d = NewPair(Prompt(20, 7));
  Step({{&a, 0, 20}, {&b, 0, 22}, {&c, 0, 15}});
  Step({{&a, 20}});
  Step({{&a, 21}});
  Step({{&a, 22}, {&b, 22}, {&c, 15}});
  Step({{&c, 16}, {&a, 23}, {&b, 23}});
  Step({{&c, 17}, {&d, 0, 9}, {&a, 24}});
  Step({{&d, 9}, {&b, 24}, {&a, 25}, {&c, 18}});
  Step({{&b, 25}});
  Step({{&d, 10}, {&c, 19}});
  Step({{&d, 11}, {&c, 20}});
  Step({{&d, 12}, {&c, 21}});
  EXPECT_EQ(counters().recordings_total, 3u);
  EXPECT_EQ(counters().launches_total, 6u);
  EXPECT_EQ(counters().failures_total, 0u);
  EXPECT_EQ(gpu().num_graph_launches(), 6);
}

INSTANTIATE_TEST_SUITE_P(All, DecodeGraphsOfTest,
                         testing::Values("llama", "gemma3", "qwen3moe", "deepseek2", "gpt-oss"),
                         [](const testing::TestParamInfo<const char*>& param_info) {
                           std::string name = param_info.param;
                           if (name == "gpt-oss") name = "gpt_oss";
                           return name;
                         });

// Prompts of more than 36 tokens turn by other frequencies, and are no longer than 24 in a window.
TEST_F(DecodeGraphsTest, RowsThatTurnByOtherFrequenciesHaveGraphsOfTheirOwn) {
  Open("phi3");
  const Pair is_long = NewPair(Prompt(45, 3)), is_short = NewPair(Prompt(30, 4));
  Step({{&is_long, 0, 38}, {&is_short, 0, 20}});
  for (int i = 0; i < 3; ++i) Step({{&is_short, 20 + i}});
  for (int i = 0; i < 3; ++i) Step({{&is_long, 38 + i}});
  EXPECT_EQ(counters().recordings_total, 2u);
  Step({{&is_short, 23}, {&is_long, 41}});
  Step({{&is_short, 24}, {&is_long, 42}});
  EXPECT_EQ(counters().recordings_total, 2u);  // both kinds in one step: launched
  EXPECT_EQ(counters().launches_total, 4u);
}

// Keys and values that were never computed, written block by block: contexts of several splits.
class LongContextGraphsTest : public DecodeGraphsTest {
 protected:
  void SetUp() override {
    Open("llama", {.max_sequences = 2, .max_context = 2048, .num_blocks = 260});
    a_ = NewPair(Prompt(2048, 1));
    b_ = NewPair(Prompt(2048, 2));
    std::mt19937 random(5);
    std::vector<std::byte> bytes(with_->runner().block_bytes(0));
    for (const Pair* pair : {&a_, &b_}) {
      for (size_t i = 0; i < pair->with->block_tables[0].size(); ++i) {
        for (size_t at = 0; at + 1 < bytes.size(); at += 2) {
          const uint16_t value =
              F32ToF16(static_cast<float>(static_cast<int>(random() % 2000) - 1000) / 500);
          std::memcpy(bytes.data() + at, &value, 2);
        }
        for (const auto& [harness, sequence] :
             {std::pair{with_.get(), pair->with.get()}, {without_.get(), pair->without.get()}}) {
          ASSERT_TRUE(
              harness->runner().WriteBlock(0, sequence->block_tables[0][i], bytes.data()).ok());
        }
      }
    }
  }
  Pair a_, b_;
};

// The launches of a graph serve every context of its bucket, whatever that of the recording was.
TEST_F(LongContextGraphsTest, ContextsGrowWithinABucketAndPastIt) {
  for (const int32_t position : {510, 511, 512, 600, 1023, 1024, 1025, 1030, 1700, 2047, 3}) {
    Step({{&a_, position}});
  }
  EXPECT_EQ(counters().recordings_total, 3u);
  Step({{&a_, 1100}, {&b_, 40}});
  Step({{&a_, 1101}, {&b_, 1999}});
  Step({{&b_, 1300}, {&a_, 1102}});
  EXPECT_EQ(counters().recordings_total, 3u + 0u + 1u);
}

// Four graphs are kept: rows up to two, two lengths of contexts.
TEST_F(LongContextGraphsTest, AGraphThatGaveWayIsNotReplayedForAnotherShape) {
  for (const int32_t position : {100, 101, 102}) Step({{&a_, position}});
  for (const int32_t position : {200, 201, 202}) Step({{&a_, position}, {&b_, 50}});
  for (const int32_t position : {700, 701, 702}) Step({{&b_, position}});
  for (const int32_t position : {800, 801, 802}) Step({{&a_, position}, {&b_, 60}});
  for (const int32_t position : {1200, 1201, 1202})
    Step({{&a_, position}});  // takes the first place
  for (const int32_t position : {103, 104, 105}) Step({{&a_, position}});
  EXPECT_EQ(counters().recordings_total, 6u);
  EXPECT_EQ(counters().launches_total, 12u);
}

// A step that fails at a call of a graph's is the same step, launched; later ones try again.
TEST_F(DecodeGraphsTest, FailedCallsOfGraphsCostNothing) {
  for (const char* call : {"cudaGraphCreate", "LoadKernel", "cudaGraphAddKernelNode",
                           "cudaGraphInstantiate", "cudaGraphLaunch"}) {
    SCOPED_TRACE(call);
    Open("llama");
    const Pair a = NewPair(Prompt(30, 1)), b = NewPair(Prompt(30, 2));
    Step({{&a, 0, 20}, {&b, 0, 20}});
    Step({{&a, 20}});
    gpu().FailNext(call, cudaErrorMemoryAllocation);
    Step({{&a, 21}});
    EXPECT_EQ(gpu().failed_call(), call);
    Step({{&a, 22}});
    EXPECT_EQ(counters().failures_total, 1u);
    EXPECT_EQ(counters().launches_total, 0u);
    Step({{&a, 23}, {&b, 20}});  // another bucket
    Step({{&a, 24}, {&b, 21}});
    EXPECT_EQ(counters().launches_total, 1u);
    Step({{&a, 25}});
    EXPECT_EQ(counters().launches_total, 1u);
    Step({{&a, 26}});
    EXPECT_EQ(counters().launches_total, 2u);
    EXPECT_EQ(counters().failures_total, 1u);
  }
}

// Any call of the step that records, one after the other.
TEST_F(DecodeGraphsTest, ACallThatFailsWhileRecordingCostsNothing) {
  int num_failed = 0;
  bool all_calls = false;
  for (int64_t call = 0; !all_calls; call += 13) {
    Open("llama", {.max_sequences = 1, .max_context = 64, .num_blocks = 4});
    const Pair a = NewPair(Prompt(30, 1));
    ASSERT_TRUE(with_->Run({{a.with.get(), 0, 20, 1}}).ok());
    ASSERT_TRUE(with_->Run({{a.with.get(), 20, 1, 1}}).ok());
    gpu().FailCall(call, cudaErrorUnknown);
    const auto logits = with_->Run({{a.with.get(), 21, 1, 1}});
    all_calls = gpu().failed_call().empty();
    gpu().FailCall(1 << 30, cudaErrorUnknown);  // no other call
    const bool failed_to_record = counters().failures_total > 0;
    if (failed_to_record) {
      EXPECT_TRUE(logits.ok()) << gpu().failed_call() << " " << logits.status();
      ++num_failed;
    }
    // Whatever it was, the stream and the sequence go on.
    const auto next = with_->Run({{a.with.get(), 21, 1, 1}});
    ASSERT_TRUE(next.ok()) << "call " << call << ": " << next.status();
    ASSERT_TRUE(without_->Run({{a.without.get(), 0, 21, 1}}).ok());
    const auto expected = without_->Run({{a.without.get(), 21, 1, 1}});
    ASSERT_TRUE(expected.ok());
    EXPECT_EQ(*next, *expected);
  }
  EXPECT_GT(num_failed, 5);
}

}  // namespace
}  // namespace llm
