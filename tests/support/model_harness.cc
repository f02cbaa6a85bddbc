// Blocks are dealt out in a shuffled order, so that a kernel that ignores the table is found out.
#include "tests/support/model_harness.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>

#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {

const KernelTable* BackendUnderTest() {
  const char* backend = std::getenv("INLAY_BACKEND");
  const KernelTable* kernels = AvailableKernels().front();
  for (const KernelTable* table : AvailableKernels()) {
    if (backend != nullptr && std::string(backend) == table->name) kernels = table;
  }
  return kernels;
}

absl::StatusOr<std::unique_ptr<ModelHarness>> ModelHarness::Create(const WeightSource& source,
                                                                   const HarnessOptions& options) {
  std::unique_ptr<ModelHarness> harness(new ModelHarness());
  harness->options_ = options;
  LLM_ASSIGN_OR_RETURN(harness->pool_, ThreadPool::Create({.num_threads = options.num_threads}));
  WeightsOptions weights = {
      .kernels = options.kernels, .pool = harness->pool_.get(), .allocator = &harness->allocator_};
  if (options.kernels->open_device != nullptr) {
    LLM_ASSIGN_OR_RETURN(weights.device, options.kernels->open_device(0));
  }
  LLM_ASSIGN_OR_RETURN(harness->model_, LoadModel(source, weights));
  RunnerOptions runner_options;
  runner_options.kv_dtype = options.kv_dtype;
  runner_options.max_step_tokens = options.max_step_tokens;
  runner_options.max_sequences = options.max_sequences;
  runner_options.max_logit_rows = options.max_logit_rows;
  runner_options.max_context = options.max_context;
  runner_options.float_activations = options.float_activations;
  runner_options.graphs = options.graphs;
  runner_options.batch_invariant = options.batch_invariant;
  runner_options.num_blocks.assign(harness->model_->config.kv_groups.size(), options.num_blocks);
  LLM_ASSIGN_OR_RETURN(harness->runner_,
                       ModelRunner::Create(harness->model_.get(), runner_options,
                                           harness->pool_.get(), &harness->allocator_));
  harness->Reset();
  return harness;
}

void ModelHarness::Reset() {
  std::mt19937 generator(7);
  free_blocks_.resize(model_->config.kv_groups.size());
  for (std::vector<BlockId>& blocks : free_blocks_) {
    blocks.resize(static_cast<size_t>(options_.num_blocks));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), generator);
  }
}

BlockId ModelHarness::NewBlock(int group) {
  std::vector<BlockId>& blocks = free_blocks_[static_cast<size_t>(group)];
  const BlockId block = blocks.at(blocks.size() - 1);
  blocks.pop_back();
  return block;
}

std::unique_ptr<Sequence> ModelHarness::NewSequence(std::vector<int32_t> tokens, int max_tokens) {
  auto sequence = std::make_unique<Sequence>();
  sequence->request.prompt = tokens;
  sequence->score_begin = 0;  // a device shows no other rows
  sequence->tokens = std::move(tokens);
  const int above = model_->config.long_rope_above;
  sequence->request.long_rope = above > 0 && sequence->num_tokens() > above;
  sequence->block_tables.resize(free_blocks_.size());
  for (size_t group = 0; group < free_blocks_.size(); ++group) {
    for (int i = 0; i < CeilDiv(max_tokens, 16); ++i) {
      sequence->block_tables[group].push_back(NewBlock(static_cast<int>(group)));
    }
  }
  return sequence;
}

absl::StatusOr<std::vector<float>> ModelHarness::Run(const std::vector<ScheduledChunk>& chunks,
                                                     const std::vector<BlockCopy>& copies) {
  StepPlan plan;
  plan.chunks = chunks;
  plan.block_copies = copies;
  for (const ScheduledChunk& chunk : chunks) plan.num_tokens += chunk.length;
  LLM_ASSIGN_OR_RETURN(const StepLogits logits, runner_->Execute(plan));
  return std::vector<float>(logits.logits, logits.logits + logits.rows * logits.vocab_size);
}

absl::StatusOr<std::vector<float>> ModelHarness::LogitsOfAll(Sequence* sequence, int chunk_size) {
  std::vector<float> all;
  for (int begin = 0; begin < sequence->num_tokens(); begin += chunk_size) {
    const int length = std::min(chunk_size, sequence->num_tokens() - begin);
    LLM_ASSIGN_OR_RETURN(const std::vector<float> logits, Run({{sequence, begin, length, length}}));
    all.insert(all.end(), logits.begin(), logits.end());
  }
  return all;
}

absl::StatusOr<std::vector<float>> ModelHarness::LastLogits(const std::vector<int32_t>& tokens) {
  Reset();
  const int length = static_cast<int>(tokens.size());
  const std::unique_ptr<Sequence> sequence = NewSequence(tokens, length);
  return Run({{sequence.get(), 0, length, 1}});
}

}  // namespace llm
