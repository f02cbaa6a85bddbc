// The runner of a real model: builds the batch, copies blocks, runs the decoder, and measures the
// logits.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "src/base/thread_pool.h"
#include "src/cache/kv_cache.h"
#include "src/model/decoder.h"
#include "src/model/model.h"
#include "src/runner/batch_builder.h"
#include "src/runner/draw_builder.h"
#include "src/runner/graph_cache.h"
#include "src/runner/next_step.h"
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
  // was changed then. On a device the call waits once, at its end, for the step that it was asked
  // for; behind a plan that looks ahead, the next one is on the stream by then.
  absl::StatusOr<StepLogits> Execute(const StepPlan& plan) override;
  bool runs_ahead() const override { return next_ != nullptr; }
  bool is_ahead() const override { return ahead_.has_value(); }
  AheadCounters ahead() const override { return ahead_counters_; }

  size_t block_bytes(int group) const override { return kv_cache_->block_bytes(group); }
  absl::Status ReadBlock(int group, BlockId block, std::byte* out) const override {
    return kv_cache_->ReadBlock(group, block, out);
  }
  absl::Status WriteBlock(int group, BlockId block, const std::byte* from) override {
    return kv_cache_->WriteBlock(group, block, from);
  }
  absl::Status DeviceStatus() const override { return device_status_; }
  std::vector<std::string> TakeNotices() override {
    return device_stream_ != nullptr ? device_stream_->TakeNotices() : std::vector<std::string>();
  }
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
  bool TokensAreKnown(const Batch& batch) const;
  absl::Status Forward(const Batch& batch);
  absl::Status Measure(int64_t rows);

  // device_steps.cc
  absl::StatusOr<StepLogits> ExecuteOnDevice(const StepPlan& plan);
  // Makes the step that is on its way the last one, if it is what the plan asks for.
  bool TakeAhead(const StepPlan& plan);
  absl::Status QueuePlan(const StepPlan& plan);
  // Queues the step behind the last one, as far as it can be told. What fails is as if it could
  // not.
  void RunAhead(const StepPlan& plan);
  // Puts the step, with what its results need, on the stream. `pending`: as of BatchBuilder.
  absl::StatusOr<QueuedStep> Queue(const StepPlan& plan, absl::Span<const int32_t> pending);
  // Of neither the last step nor the one before it.
  int NextMark() const { return (queued_mark_ + 1) % DeviceStream::kNumMarks; }
  // The device draws what it can of the rows that were measured.
  absl::Status DrawRows(int64_t rows, const StepDraws& draws);
  static PendingTokens TokensOf(const RowMeasures& measures);
  // Puts the last step's results in the order of rows_, which are all that are wanted.
  void KeepRows(const RowMeasures& measures);

  StepLogits ResultsOf(const StepResults& results, const QueuedStep& step) const;

  const Model& model_;
  Buffer workspace_;  // of the backend's memory
  Buffer pinned_;     // a device's: what the host writes and reads
  std::unique_ptr<KvCache> kv_cache_;
  std::unique_ptr<DeviceStream> device_stream_;  // goes before the memory that its work uses
  Stream stream_;
  std::vector<KvLayerView> kv_views_;  // [num_layers]
  StepResults results_;
  StepResults host_results_[DeviceStream::kNumMarks];  // of a device's steps in turns
  std::unique_ptr<BatchBuilder> batch_builder_;
  std::unique_ptr<DrawBuilder> draw_builder_;  // a device's
  float* edited_logits_ = nullptr;             // see RunnerWorkspace
  std::unique_ptr<Decoder> decoder_;
  ReservedBytes graph_bytes_;
  std::unique_ptr<GraphCache> graphs_;  // null: none are made
  // Null: no step begins before it is asked for.
  std::unique_ptr<BatchBuilder> wanted_builder_;  // of plans that may have begun
  std::unique_ptr<NextStep> next_;
  std::optional<QueuedStep> ahead_;  // that next_ tells of
  Batch queued_batch_;               // of the last step that was queued
  int queued_mark_ = 0;              // likewise
  QueuedStep last_;                  // whose results were asked for last
  std::vector<int32_t> rows_;        // of it, [chunks]
  std::vector<int32_t> kept_ids_;    // scratch of KeepRows, as the next
  std::vector<float> kept_values_;
  AheadCounters ahead_counters_;
  absl::Status device_status_;
  absl::Status library_status_;
};

}  // namespace llm
