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
#include "src/runner/draw_builder.h"
#include "src/runner/graph_cache.h"
#include "src/runner/runner.h"
#include "src/runner/runner_options.h"
#include "src/runner/step_results.h"
#include "src/tensor/buffer.h"
#include "src/tensor/device.h"
#include "src/tensor/reserved_bytes.h"

namespace llm {

class ModelRunner : public Runner {
 public:
  // Allocates the KV cache and the workspace, where the model's weights are; no later call
  // allocates anything of size. Model, pool and allocator outlive the runner. The errors are
  // PlanRunner's, RESOURCE_EXHAUSTED, and those of the device.
  static absl::StatusOr<std::unique_ptr<ModelRunner>> Create(const Model* model,
                                                             const RunnerOptions& options,
                                                             ThreadPool* pool,
                                                             Allocator* allocator);

  // See Runner. INTERNAL for a plan that BatchBuilder refuses or a copy outside the blocks: nothing
  // was changed then. On a device the call waits once, at its end.
  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override;

  size_t block_bytes(int group) const override { return kv_cache_->block_bytes(group); }
  absl::Status ReadBlock(int group, BlockId block, std::byte* out) const override {
    return kv_cache_->ReadBlock(group, block, out);
  }
  absl::Status WriteBlock(int group, BlockId block, const std::byte* from) override {
    return kv_cache_->WriteBlock(group, block, from);
  }
  absl::Status DeviceStatus() const override { return device_status_; }
  GraphCounters graphs() const override {
    return graphs_ != nullptr ? graphs_->counters() : GraphCounters();
  }

  void SetTrace(TraceRecorder* trace, const Clock* clock) override {
    stream_.pool->SetTrace(trace, clock);
  }

  const KvCache& kv_cache() const { return *kv_cache_; }
  // UNAVAILABLE: without batch_invariant, the library of linear layers is not here.
  const absl::Status& library_status() const { return library_status_; }

 private:
  ModelRunner(const Model* model, ThreadPool* pool) : model_(*model), stream_{.pool = pool} {}
  absl::Status Build(const RunnerOptions& options, const RunnerBytes& bytes, Allocator* allocator);
  absl::Status BuildCache(const RunnerOptions& options, Allocator* allocator);
  absl::Status CheckCopies(const StepPlan& plan) const;
  // Puts the step's work on the stream: all of it, where it does not run at once.
  absl::Status Run(const StepPlan& plan, const Batch& batch, const GraphBucket* bucket);
  // Leaves the batch's logit rows those of the plan.
  absl::Status RunOnDevice(const StepPlan& plan, const GraphBucket* bucket, Batch* batch);
  bool TokensAreKnown(const Batch& batch) const;
  absl::Status Forward(const Batch& batch);
  absl::Status Measure(int64_t rows);
  // The device draws what it can of the rows that were measured.
  absl::Status DrawRows(int64_t rows);
  StepLogits ResultsOf(const Batch& batch) const;

  const Model& model_;
  Buffer workspace_;  // of the backend's memory
  Buffer pinned_;     // a device's: what the host writes and reads
  std::unique_ptr<KvCache> kv_cache_;
  std::unique_ptr<DeviceStream> device_stream_;  // goes before the memory that its work uses
  Stream stream_;
  std::vector<KvLayerView> kv_views_;  // [num_layers]
  StepResults results_;
  StepResults host_results_;
  std::unique_ptr<BatchBuilder> batch_builder_;
  std::unique_ptr<DrawBuilder> draw_builder_;  // a device's
  StepDraws draws_;                            // of this step
  float* edited_logits_ = nullptr;             // see RunnerWorkspace
  std::unique_ptr<Decoder> decoder_;
  ReservedBytes graph_bytes_;
  std::unique_ptr<GraphCache> graphs_;  // null: none are made
  absl::Status device_status_;
  absl::Status library_status_;
};

}  // namespace llm
