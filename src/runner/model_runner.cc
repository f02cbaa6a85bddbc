// A plan is checked as a whole before the first byte of the cache changes.
#include "src/runner/model_runner.h"

#include <algorithm>
#include <iterator>
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
  if (options.num_blocks.size() != config.kv_groups.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("runner: num_blocks for ", options.num_blocks.size(),
                     " groups, the model has ", config.kv_groups.size()));
  }
  LLM_ASSIGN_OR_RETURN(const RunnerBytes bytes,
                       PlanRunner(config, *model->kernels, options, pool->num_threads()));
  std::unique_ptr<ModelRunner> runner(new ModelRunner(model, pool));
  LLM_RETURN_IF_ERROR(runner->Build(options, bytes, allocator));
  return runner;
}

absl::Status ModelRunner::Build(const RunnerOptions& options, const RunnerBytes& bytes,
                                Allocator* allocator) {
  Device* device = model_.device.get();
  LLM_ASSIGN_OR_RETURN(
      workspace_, Buffer::AllocateOn(device, allocator,
                                     bytes.workspace - bytes.pinned - bytes.graphs, "workspace"));
  if (device != nullptr) {
    LLM_ASSIGN_OR_RETURN(pinned_, Buffer::AllocatePinned(device, allocator, bytes.pinned,
                                                         "pinned memory of the workspace"));
  }
  Arena arena(workspace_.data());
  Arena pinned(pinned_.data());
  RunnerWorkspace workspace =
      LayOutRunner(model_.config, *model_.kernels, options, stream_.pool->num_threads(),
                   device != nullptr ? &pinned : &arena, &arena);
  results_ = workspace.results;
  std::copy(std::begin(workspace.host_results), std::end(workspace.host_results), host_results_);
  batch_builder_ = std::move(workspace.batch_builder);
  wanted_builder_ = std::move(workspace.wanted_builder);
  draw_builder_ = std::move(workspace.draw_builder);
  if (wanted_builder_ != nullptr) {
    next_ = std::make_unique<NextStep>(options.max_sequences, options.block_size);
    kept_ids_.resize(static_cast<size_t>(options.max_sequences));
    kept_values_.resize(static_cast<size_t>(options.max_sequences));
  }
  edited_logits_ = workspace.edited_logits;
  if (device != nullptr) {
    LLM_ASSIGN_OR_RETURN(device_stream_, device->CreateStream(workspace.uploads));
    stream_.device = device_stream_.get();
    if (!workspace.library.empty()) {
      library_status_ =
          device_stream_->UseLibrary(workspace.library.data(), workspace.library.size());
      if (!absl::IsUnavailable(library_status_)) LLM_RETURN_IF_ERROR(library_status_);
    }
  }
  LLM_RETURN_IF_ERROR(BuildCache(options, allocator));
  decoder_ = std::make_unique<Decoder>(&model_, stream_, workspace.decoder_shape,
                                       std::move(workspace.decoder));
  if (device == nullptr) return absl::OkStatus();
  if (options.graphs) {
    LLM_ASSIGN_OR_RETURN(graph_bytes_, ReservedBytes::Reserve(allocator, bytes.graphs, "graphs"));
    graphs_ =
        std::make_unique<GraphCache>(MakeGraphShape(model_.config, options), device_stream_.get());
  }
  return device_stream_->Wait();
}

absl::Status ModelRunner::BuildCache(const RunnerOptions& options, Allocator* allocator) {
  const ModelConfig& config = model_.config;
  const KvLayout layout = MakeKvLayout(config, options);
  LLM_ASSIGN_OR_RETURN(
      kv_cache_,
      KvCache::Create(allocator, config.kv_groups, options.num_blocks, layout.block_bytes(),
                      {.device = model_.device.get(), .stream = device_stream_.get()}));
  for (int layer = 0; layer < config.num_layers; ++layer) {
    const int group = config.layers[static_cast<size_t>(layer)].kv_group;
    kv_views_.push_back({.layout = layout,
                         .base = kv_cache_->LayerBase(layer),
                         .num_blocks = kv_cache_->num_blocks(group)});
    if (!layout.constant_scales) continue;
    kv_views_.back().key_scale = config.kv_scales.keys[static_cast<size_t>(layer)];
    kv_views_.back().value_scale = config.kv_scales.values[static_cast<size_t>(layer)];
  }
  return absl::OkStatus();
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
  if (device_stream_ != nullptr) return ExecuteOnDevice(plan);
  LLM_ASSIGN_OR_RETURN(const Batch batch, batch_builder_->Build(plan));
  LLM_RETURN_IF_ERROR(Run(plan, batch, nullptr));
  last_.num_rows = batch.logit_rows.size();
  last_.num_hidden = batch.hidden_rows.size();
  return ResultsOf(host_results_[0], last_);
}

absl::Status ModelRunner::Run(const StepPlan& plan, const Batch& batch, const GraphBucket* bucket) {
  for (const BlockCopy& copy : plan.block_copies) {
    LLM_RETURN_IF_ERROR(kv_cache_->CopyBlock(copy.group, copy.source, copy.destination));
  }
  if (batch.token_ids.empty()) return absl::OkStatus();
  const NvtxRange range("forward");
  const auto launch = [&] { return Forward(batch); };
  if (bucket == nullptr || !TokensAreKnown(batch)) return launch();
  return graphs_->Run(*bucket, launch,
                      [&] { return batch_builder_->WithLongestContexts(batch, launch); });
}

// A graph looks at no id: what is wrong with one is for the launches to say.
bool ModelRunner::TokensAreKnown(const Batch& batch) const {
  return std::all_of(batch.token_ids.begin(), batch.token_ids.end(), [&](int32_t id) {
    return id < 0 ? IsPending(id, batch.pending) : id < model_.config.vocab_size;
  });
}

absl::Status ModelRunner::Forward(const Batch& batch) {
  LLM_RETURN_IF_ERROR(decoder_->Forward(batch, kv_views_, results_.logits));
  return Measure(static_cast<int64_t>(batch.logit_rows.size()));
}

absl::Status ModelRunner::Measure(int64_t rows) {
  if (rows == 0) return absl::OkStatus();
  stream_.pool->set_op("row_stats");
  return model_.kernels->row_stats({.logits = results_.logits,
                                    .rows = rows,
                                    .cols = model_.config.vocab_size,
                                    .argmax = results_.measures.argmax,
                                    .max = results_.measures.max,
                                    .log_sum_exp = results_.measures.log_sum_exp},
                                   stream_);
}

StepLogits ModelRunner::ResultsOf(const StepResults& results, const QueuedStep& step) const {
  const int64_t hidden_size = model_.config.hidden_size;
  return {.logits = results.logits,
          .argmax = {results.measures.argmax, step.num_rows},
          .max = {results.measures.max, step.num_rows},
          .log_sum_exp = {results.measures.log_sum_exp, step.num_rows},
          .rows = static_cast<int64_t>(step.num_rows),
          .vocab_size = model_.config.vocab_size,
          .draw_of_row = step.draw_of_row,
          .drawn = results.measures.drawn,
          .drawn_top = results.measures.top,
          .max_drawn_top = step.max_top,
          .hidden = results.hidden + static_cast<int64_t>(step.num_rows) * hidden_size,
          .hidden_rows = static_cast<int64_t>(step.num_hidden),
          .hidden_size = hidden_size};
}

}  // namespace llm
