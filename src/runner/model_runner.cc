// A plan is checked as a whole before the first byte of the cache changes.
#include "src/runner/model_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/nvtx.h"
#include "src/base/status_macros.h"
#include "src/runner/runner_workspace.h"

namespace llm {

absl::StatusOr<std::unique_ptr<ModelRunner>> ModelRunner::Create(const Model* model,
                                                                 const RunnerOptions& options,
                                                                 ThreadPool* pool,
                                                                 Allocator* allocator) {
  const ModelConfig& config = model->config;
  const int num_threads = pool->num_threads();
  if (options.num_blocks.size() != config.kv_groups.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("runner: num_blocks for ", options.num_blocks.size(),
                     " groups, the model has ", config.kv_groups.size()));
  }
  LLM_ASSIGN_OR_RETURN(const RunnerBytes bytes,
                       PlanRunner(config, *model->kernels, options, num_threads));
  std::unique_ptr<ModelRunner> runner(new ModelRunner(model, Stream{.pool = pool}));
  const KvLayout layout = MakeKvLayout(config, options);
  LLM_ASSIGN_OR_RETURN(
      runner->kv_cache_,
      KvCache::Create(allocator, config.kv_groups, options.num_blocks, layout.block_bytes()));
  LLM_ASSIGN_OR_RETURN(runner->workspace_,
                       Buffer::Allocate(allocator, bytes.workspace, "workspace"));
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const int group = config.layers[static_cast<size_t>(layer)].kv_group;
    runner->kv_views_.push_back({.layout = layout,
                                 .base = runner->kv_cache_->LayerBase(layer),
                                 .num_blocks = runner->kv_cache_->num_blocks(group)});
    if (!layout.constant_scales) continue;
    runner->kv_views_.back().key_scale = config.kv_scales.keys[static_cast<size_t>(layer)];
    runner->kv_views_.back().value_scale = config.kv_scales.values[static_cast<size_t>(layer)];
  }
  Arena arena(runner->workspace_.data());
  RunnerWorkspace workspace = LayOutRunner(config, *model->kernels, options, num_threads, &arena);
  runner->logits_ = workspace.logits;
  runner->argmax_ = workspace.argmax;
  runner->max_ = workspace.max;
  runner->log_sum_exp_ = workspace.log_sum_exp;
  runner->batch_builder_ = std::move(workspace.batch_builder);
  runner->decoder_ = std::make_unique<Decoder>(model, runner->stream_, workspace.decoder_shape,
                                               std::move(workspace.decoder));
  return runner;
}

absl::Status ModelRunner::CheckCopies(const StepPlan& plan) const {
  const auto num_groups = static_cast<int>(model_.config.kv_groups.size());
  for (const BlockCopy& copy : plan.block_copies) {
    const int num_blocks =
        copy.group >= 0 && copy.group < num_groups ? kv_cache_->num_blocks(copy.group) : 0;
    if (copy.source < 0 || copy.source >= num_blocks || copy.destination < 0 ||
        copy.destination >= num_blocks || copy.source == copy.destination) {
      return absl::InternalError(absl::StrCat("runner: bad copy of block ", copy.source, " to ",
                                              copy.destination, " in group ", copy.group, " of ",
                                              num_blocks, " blocks"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<StepLogits> ModelRunner::Execute(const StepPlan& plan) {
  LLM_RETURN_IF_ERROR(CheckCopies(plan));
  LLM_ASSIGN_OR_RETURN(const Batch batch, batch_builder_->Build(plan));
  for (const BlockCopy& copy : plan.block_copies) {
    kv_cache_->CopyBlock(copy.group, copy.source, copy.destination);
  }
  if (!batch.token_ids.empty()) {
    const NvtxRange range("forward");
    LLM_RETURN_IF_ERROR(decoder_->Forward(batch, kv_views_, logits_));
  }
  LLM_ASSIGN_OR_RETURN(StepLogits result, Measure(static_cast<int64_t>(batch.logit_rows.size())));
  result.hidden = decoder_->HiddenRows(batch);
  result.hidden_rows = static_cast<int64_t>(batch.hidden_rows.size());
  result.hidden_size = model_.config.hidden_size;
  return result;
}

absl::StatusOr<StepLogits> ModelRunner::Measure(int64_t rows) {
  const int64_t vocab_size = model_.config.vocab_size;
  if (rows > 0) {
    stream_.pool->set_op("row_stats");
    LLM_RETURN_IF_ERROR(model_.kernels->row_stats({.logits = logits_,
                                                   .rows = rows,
                                                   .cols = vocab_size,
                                                   .argmax = argmax_,
                                                   .max = max_,
                                                   .log_sum_exp = log_sum_exp_},
                                                  stream_));
  }
  const auto size = static_cast<size_t>(rows);
  return StepLogits{.logits = logits_,
                    .argmax = {argmax_, size},
                    .max = {max_, size},
                    .log_sum_exp = {log_sum_exp_, size},
                    .rows = rows,
                    .vocab_size = vocab_size};
}

}  // namespace llm
