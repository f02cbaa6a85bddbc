// Runs a piece of a host's work with each allocation of it failing in turn.
#pragma once

#include <gtest/gtest.h>
#include <inlay/llm.h>

#include <algorithm>
#include <cstdio>

#include "tests/faults/fault_malloc.h"
#include "tests/faults/tiny_host.h"

namespace llm {

inline bool CleanFailure(llm_status status) {
  return status == LLM_RESOURCE_EXHAUSTED || status == LLM_INTERNAL;
}

class MemoryExhaustionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_EQ(OpenTinyModel(&model_), LLM_OK) << llm_last_error();
    llm_engine* engine = nullptr;
    ASSERT_EQ(OpenTinyEngine(model_, LLM_DRIVE_MANUAL, &engine), LLM_OK) << llm_last_error();
    Answer other;
    const llm_request request = TinyRequest();
    ASSERT_EQ(llm_submit(engine, &request, &expected_.id), LLM_OK);
    ReadUntilFinished(engine, LLM_DRIVE_MANUAL, &expected_, &other);
    ASSERT_EQ(llm_engine_close(engine), LLM_OK);
    ASSERT_EQ(expected_.num_ids, size_t{kTinyTokens});
  }
  static void TearDownTestSuite() { llm_model_release(model_); }

  static void ExpectRight(const Answer& answer) {
    EXPECT_EQ(answer.num_finished, 1);
    EXPECT_TRUE(answer.status == LLM_OK || CleanFailure(answer.status)) << answer.status;
    EXPECT_TRUE(answer.status != LLM_OK || answer.num_ids == size_t{kTinyTokens});
    EXPECT_TRUE(std::equal(answer.ids, answer.ids + answer.num_ids, expected_.ids));
  }
  static void ExpectServes(llm_engine* engine, uint32_t drive) {
    Answer answer, other;
    const llm_request request = TinyRequest();
    ASSERT_EQ(llm_submit(engine, &request, &answer.id), LLM_OK) << llm_last_error();
    ReadUntilFinished(engine, drive, &answer, &other);
    EXPECT_EQ(answer.status, LLM_OK);
    ExpectRight(answer);
  }

  // Runs `body` with allocation n failing, for every n.
  template <typename Body>
  static void ForEachAllocation(const char* name, Body body) {
    for (int i = 0; i < 2; ++i) body(int64_t{1} << 40);  // warms up what stays, and counts
    const int64_t total = NumAllocationsSeen();
    int64_t live = NumLiveAllocations();
    int64_t runs = 0, failed = 0;
    for (int64_t first = 0; first < total && !HasFailure(); ++first, ++runs) {
      SCOPED_TRACE(testing::Message() << "allocation " << first << " of " << total);
      body(first);
      failed += NumAllocationsFailed();
      // What an error path loads once stays; what is lost again the second time leaks.
      if (NumLiveAllocations() > live) {
        live = NumLiveAllocations();
        body(first);
        EXPECT_LE(NumLiveAllocations(), live);
      }
      live = NumLiveAllocations();
    }
    std::printf("%s: %lld runs over %lld allocations, %lld failures injected\n", name,
                static_cast<long long>(runs), static_cast<long long>(total),
                static_cast<long long>(failed));
  }

  static inline llm_model* model_ = nullptr;
  static inline Answer expected_;
};

}  // namespace llm
