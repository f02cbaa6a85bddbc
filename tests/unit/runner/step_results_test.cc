// The host gets the rows that it looks at, in their places, and no others.
#include "src/runner/step_results.h"

#include <array>
#include <cstring>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace llm {
namespace {

using testing::ElementsAre;

// Host memory that counts what is copied out of it.
class FakeStream : public DeviceStream {
 public:
  absl::Status Begin(bool /*ahead*/) override { return absl::OkStatus(); }
  absl::Status CopyIn(void*, const void*, size_t) override { return absl::OkStatus(); }
  absl::Status CopyWithin(void*, const void*, size_t) override { return absl::OkStatus(); }
  absl::Status Clear(void*, size_t) override { return absl::OkStatus(); }
  absl::Status Wait() override { return absl::OkStatus(); }
  absl::Status CopyOut(void* to, const void* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    sizes.push_back(bytes);
    return absl::OkStatus();
  }

  std::vector<size_t> sizes;
};

constexpr int kRows = 8, kVocab = 4, kHidden = 2;

class StepResultsTest : public testing::Test {
 protected:
  StepResultsTest() {
    config_.vocab_size = kVocab;
    config_.hidden_size = kHidden;
    Arena from_arena(from_memory_.data()), to_arena(to_memory_.data());
    from_ = LayOut(&from_arena);
    to_ = LayOut(&to_arena);
    for (int i = 0; i < kRows * kVocab; ++i) from_.logits[i] = static_cast<float>(i + 1);
    for (int i = 0; i < kRows * kHidden; ++i) from_.hidden[i] = static_cast<float>(100 + i);
    for (int i = 0; i < kRows; ++i) {
      from_.measures.argmax[i] = i;
      from_.measures.log_sum_exp[i] = static_cast<float>(10 + i);
    }
  }
  static StepResults LayOut(Arena* arena) {
    StepResults results;
    results.measures = TakeMeasures(kRows, kRows, arena);
    results.hidden = arena->Take<float>(kRows * kHidden);
    results.logits = arena->Take<float>(kRows * kVocab);
    return results;
  }
  // Whether the first logit of each row has come.
  std::vector<bool> Came(int rows) const {
    std::vector<bool> came;
    for (int row = 0; row < rows; ++row) came.push_back(to_.logits[row * kVocab] != 0);
    return came;
  }
  void Fetch(const std::vector<ScheduledChunk>& chunks, size_t num_hidden = 0,
             const StepDraws& draws = {}) {
    StepPlan plan;
    plan.chunks = chunks;
    std::vector<int32_t> rows;
    for (const ScheduledChunk& chunk : chunks) {
      rows.insert(rows.end(), static_cast<size_t>(chunk.num_logits), 0);
    }
    const std::vector<int32_t> hidden(num_hidden);
    Batch batch;
    batch.logit_rows = rows;
    batch.hidden_rows = hidden;
    ASSERT_TRUE(FetchResults(plan, batch, draws, config_, from_, to_, &stream_).ok());
  }

  ModelConfig config_;
  alignas(64) std::array<std::byte, 4096> from_memory_ = {};
  alignas(64) std::array<std::byte, 4096> to_memory_ = {};
  StepResults from_, to_;
  FakeStream stream_;
};

TEST_F(StepResultsTest, RowsOfGreedyRequestsStay) {
  Sequence greedy, drawn, scored, greedy_logprobs;
  drawn.request.sampling.temperature = 1;
  scored.score_begin = 0;
  greedy_logprobs.request.sampling.num_logprobs = 0;  // the token's own needs no row
  Fetch({{&greedy, 0, 1, 1},
         {&drawn, 0, 1, 1},
         {&greedy, 0, 5, 0},
         {&scored, 0, 2, 2},
         {&greedy_logprobs, 0, 1, 1},
         {&drawn, 0, 1, 1}});
  EXPECT_THAT(Came(6), ElementsAre(false, true, true, true, false, true));
  EXPECT_EQ(to_.logits[3 * kVocab + 1], 3 * kVocab + 2);
  EXPECT_EQ(to_.measures.argmax[5], 5);
  EXPECT_EQ(to_.measures.log_sum_exp[5], 15);
}

TEST_F(StepResultsTest, WhatChangesARowNeedsIt) {
  std::vector<Sequence> sequences(7);
  const auto sampling = [&](size_t i) -> SamplingParams& { return sequences[i].request.sampling; };
  sampling(0).repetition_penalty = 1.5f;
  sampling(1).logit_bias = {{1, 2.0f}};
  sampling(2).min_new_tokens = 3;
  sampling(3).bad_words = {{1}};
  sampling(4).num_logprobs = 1;
  sampling(5).presence_penalty = 1;
  std::vector<ScheduledChunk> chunks;
  for (Sequence& sequence : sequences) chunks.push_back({&sequence, 0, 1, 1});
  Fetch(chunks);
  EXPECT_THAT(Came(7), ElementsAre(true, true, true, true, true, true, false));
}

TEST_F(StepResultsTest, RowsThatTheDeviceDrawsFromStay) {
  Sequence drawn, greedy;
  drawn.request.sampling.temperature = 1;
  const std::vector<RowDraw> rows(2);
  const std::vector<int32_t> of_row = {0, -1, -1, 1};
  StepDraws draws = {.rows = rows, .edits = {}, .of_row = of_row, .max_top = 0};
  from_.measures.drawn[1] = {7, -2.0f};
  const std::vector<ScheduledChunk> chunks = {
      {&drawn, 0, 1, 1}, {&drawn, 0, 1, 1}, {&greedy, 0, 1, 1}, {&drawn, 0, 1, 1}};
  Fetch(chunks, 0, draws);
  EXPECT_THAT(Came(4), ElementsAre(false, true, false, false));
  EXPECT_EQ(to_.measures.drawn[1].id, 7);
  EXPECT_THAT(stream_.sizes,
              ElementsAre(from_.measures.bytes + 2 * sizeof(TokenLogprob), kVocab * sizeof(float)));
  draws.max_top = 3;
  from_.measures.top[5] = {9, -3.0f};
  Fetch(chunks, 0, draws);
  EXPECT_EQ(to_.measures.top[5].id, 9);
}

TEST_F(StepResultsTest, HiddenStatesComeFromBehindTheLogitRows) {
  Sequence greedy, embedded;
  Fetch({{&greedy, 0, 1, 1}, {&embedded, 0, 3, 0, 3}}, 3);
  EXPECT_EQ(to_.hidden[0], 0);
  EXPECT_EQ(to_.hidden[1 * kHidden], 100 + kHidden);
  EXPECT_EQ(to_.hidden[3 * kHidden + 1], 100 + 3 * kHidden + 1);
  EXPECT_THAT(stream_.sizes, ElementsAre(from_.measures.bytes, 3 * kHidden * sizeof(float)));
}

}  // namespace
}  // namespace llm
