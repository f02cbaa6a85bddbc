// What scheduler tests share: options of one line, sequences, and a step that always succeeds.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "src/scheduler/scheduler.h"

namespace llm {

class SchedulerTest : public testing::Test {
 protected:
  static constexpr int32_t kBlockSize = 4;

  // One full group of `num_blocks`, unless `windows` says otherwise.
  void Start(int num_blocks, SchedulingPolicy policy = SchedulingPolicy::kFcfs,
             std::vector<int> windows = {0}, int32_t max_sequences = 8) {
    SchedulerOptions options;
    options.max_sequences = max_sequences;
    options.max_context_tokens = 256;
    options.block_size = kBlockSize;
    for (int window : windows) options.groups.push_back({window, {}});
    options.num_blocks.assign(windows.size(), num_blocks);
    options.policy = policy;
    auto scheduler_or = Scheduler::Create(options);
    ASSERT_TRUE(scheduler_or.ok()) << scheduler_or.status();
    scheduler = std::move(scheduler_or).value();
  }

  // A prompt of `size` tokens first, first + 1, ...
  Sequence* Add(int32_t size, int32_t first = 0, int32_t priority = 0, std::string salt = "",
                int64_t arrival_ns = 0, int64_t first_token_deadline_ns = 0) {
    std::vector<int32_t> prompt;
    for (int32_t i = 0; i < size; ++i) prompt.push_back(first + i);
    return AddPrompt(std::move(prompt), priority, std::move(salt), arrival_ns,
                     first_token_deadline_ns);
  }
  Sequence* AddPrompt(std::vector<int32_t> prompt, int32_t priority = 0, std::string salt = "",
                      int64_t arrival_ns = 0, int64_t first_token_deadline_ns = 0) {
    sequences_.push_back(std::make_unique<Sequence>());
    Sequence* sequence = sequences_.back().get();
    sequence->request.id = sequences_.size();
    sequence->request.prompt = prompt;
    sequence->request.priority = priority;
    sequence->request.arrival_ns = arrival_ns;
    sequence->request.first_token_deadline_ns = first_token_deadline_ns;
    sequence->request.cache_salt = std::move(salt);
    sequence->tokens = std::move(prompt);
    scheduler->Add(sequence);
    return sequence;
  }

  StepPlan Plan(int32_t max_step_tokens) { return Plan(StepLimit{.max_tokens = max_step_tokens}); }
  StepPlan Plan(const StepLimit& limit) {
    StepPlan plan = scheduler->Plan(limit, ++now_ns_);
    EXPECT_TRUE(scheduler->CheckInvariants().ok()) << scheduler->CheckInvariants();
    return plan;
  }
  // Every chunk that asked for logits gets token 1000.
  void Commit(const StepPlan& plan) {
    scheduler->Commit(plan);
    EXPECT_TRUE(scheduler->CheckInvariants().ok()) << scheduler->CheckInvariants();
    for (const ScheduledChunk& chunk : plan.chunks) {
      if (chunk.num_logits > 0) chunk.sequence->tokens.push_back(1000);
    }
  }
  StepPlan Step(int32_t max_step_tokens) { return Step(StepLimit{.max_tokens = max_step_tokens}); }
  StepPlan Step(const StepLimit& limit) {
    StepPlan plan = Plan(limit);
    Commit(plan);
    return plan;
  }

  std::unique_ptr<Scheduler> scheduler;

 private:
  std::vector<std::unique_ptr<Sequence>> sequences_;
  int64_t now_ns_ = 0;
};

}  // namespace llm
