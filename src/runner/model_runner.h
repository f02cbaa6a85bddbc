// The runner of a real model: builds the batch, copies blocks, runs the decoder, and measures the
// logits.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/thread_pool.h"
#include "src/cache/kv_cache.h"
#include "src/model/decoder.h"
#include "src/model/model.h"
#include "src/runner/batch_builder.h"
#include "src/runner/runner.h"
#include "src/runner/runner_options.h"
#include "src/tensor/buffer.h"

namespace llm {

class ModelRunner : public Runner {
 public:
  // Allocates the KV cache and the workspace; no later call allocates anything of size. Model, pool
  // and allocator outlive the runner. The errors are PlanRunner's, and RESOURCE_EXHAUSTED.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model* model,
                                                             const RunnerOptions& options,
                                                             ThreadPool* pool,
                                                             Allocator* allocator);

  // See Runner. INTERNAL for a plan that BatchBuilder refuses or a copy outside the blocks: nothing
  // was changed then.
  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override;

  size_t block_bytes(int group) const override { return kv_cache_->block_bytes(group); }
  void ReadBlock(int group, BlockId block, std::byte* out) const override {
    kv_cache_->ReadBlock(group, block, out);
  }
  void WriteBlock(int group, BlockId block, const std::byte* from) override {
    kv_cache_->WriteBlock(group, block, from);
  }

  void SetTrace(TraceRecorder* trace, const Clock* clock) override {
    stream_.pool->SetTrace(trace, clock);
  }

  const KvCache& kv_cache() const { return *kv_cache_; }

 private:
  ModelRunner(const Model* model, const Stream& stream) : model_(*model), stream_(stream) {}
  absl::Status CheckCopies(const StepPlan& plan) const;
  absl::StatusOr<StepLogits> Measure(int64_t rows);

  const Model& model_;
  const Stream stream_;
  std::unique_ptr<KvCache> kv_cache_;
  std::vector<KvLayerView> kv_views_;  // [num_layers]
  Buffer workspace_;
  float* logits_ = nullptr;       // [max_logit_rows, vocab_size]
  int32_t* argmax_ = nullptr;     // [max_logit_rows]
  float* max_ = nullptr;          // [max_logit_rows]
  float* log_sum_exp_ = nullptr;  // [max_logit_rows]
  std::unique_ptr<BatchBuilder> batch_builder_;
  std::unique_ptr<Decoder> decoder_;
};

}  // namespace llm
