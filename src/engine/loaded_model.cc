// From a path to a model that can be served, in the order in which a mistake is cheapest to find:
// header, tokenizer, weights.
#include "src/engine/loaded_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "src/base/affinity.h"
#include "src/base/clock.h"
#include "src/base/float_state.h"
#include "src/base/status_macros.h"
#include "src/base/thread_pool.h"
#include "src/engine/check_vocabulary.h"
#include "src/engine/end_ids.h"
#include "src/engine/system_limits.h"
#include "src/engine/tokenizer_from_gguf.h"

namespace llm {
namespace {

absl::Status Report(const ModelOptions& options, uint64_t done_bytes, uint64_t total_bytes) {
  if (options.progress == nullptr) return absl::OkStatus();
  if (options.progress(options.progress_user_data, done_bytes, total_bytes) == 0) {
    return absl::OkStatus();
  }
  return absl::CancelledError(absl::StrCat("open: cancelled by the progress callback after ",
                                           done_bytes, " of ", total_bytes, " bytes"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LoadedModel>> LoadedModel::Open(const std::string& path,
                                                                     const ModelOptions& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, OpenModelFile(path));
  return Open(std::move(file), options);
}

absl::StatusOr<std::shared_ptr<const LoadedModel>> LoadedModel::Open(
    std::unique_ptr<ModelFile> file, const ModelOptions& options) {
  const ScopedFloatState float_state;  // norms and rope frequencies are converted here
  const std::string where = file->name();
  const SteadyClock clock;
  const int64_t start_ns = clock.NowNs();
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<WeightSource> source,
                       OpenGguf(std::move(file), options.limits));
  std::shared_ptr<LoadedModel> loaded(new LoadedModel());
  loaded->float_activations_ = options.float_activations;
  loaded->allocator_.set_limit_bytes(options.max_memory_bytes);
  loaded->allocator_.set_hooks(options.host.allocator);
  const absl::StatusOr<absl::string_view> name = source->metadata().GetString("general.name");
  if (name.ok()) loaded->name_ = std::string(*name);
  OpenTimes& times = loaded->times_;
  times.header_ns = clock.NowNs() - start_ns;
  LLM_RETURN_IF_ERROR(loaded->LoadText(*source, options));
  times.tokenizer_ns = clock.NowNs() - start_ns - times.header_ns;
  LLM_ASSIGN_OR_RETURN(const ModelConfig read, ReadModelConfig(*source));
  LLM_RETURN_IF_ERROR(CheckVocabulary(where, *loaded->tokenizer_, read.vocab_size));

  LLM_RETURN_IF_ERROR(options.header_only ? loaded->PlanWeights(*source, options)
                                          : loaded->LoadWeights(*source, options));
  const ModelConfig& config = loaded->model_->config;
  loaded->text_.vocab_size = config.vocab_size;
  loaded->listing_ = ListModel(*source);
  loaded->text_.hidden_size = config.hidden_size;
  times.read_ns = loaded->model_->weights.read_ns;
  times.repack_ns = loaded->model_->weights.repack_ns;
  times.model_ns = clock.NowNs() - start_ns;
  options.logger.Info("model ", loaded->name_, ": ", config.architecture, ", ", config.num_layers,
                      " layers, ", loaded->weights_bytes(), " bytes of weights, kernels ",
                      loaded->model_->kernels->name);
  return std::shared_ptr<const LoadedModel>(std::move(loaded));
}

absl::Status LoadedModel::LoadWeights(const WeightSource& source, const ModelOptions& options) {
  LLM_RETURN_IF_ERROR(CheckCpus(options.host.cpu_ids));
  HookFault hook_fault;
  ThreadPoolOptions threads;
  threads.num_threads = options.num_threads;
  if (options.num_threads <= 0) {
    LLM_ASSIGN_OR_RETURN(threads.num_threads, UsableCores());
  }
  threads.cpu_ids = options.host.cpu_ids;
  threads.executor = options.host.executor;
  threads.fault = &hook_fault;
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(threads));
  WeightsOptions weights;
  LLM_ASSIGN_OR_RETURN(weights.kernels, FindKernels(options.kernels));
  weights.pool = pool.get();
  weights.allocator = &allocator_;
  LLM_ASSIGN_OR_RETURN(model_,
                       LoadModel(source, weights, [&](uint64_t done_bytes, uint64_t total_bytes) {
                         return Report(options, done_bytes, total_bytes);
                       }));
  LLM_RETURN_IF_ERROR(hook_fault.status());
  weights_bytes_ = model_->weights.storage.size();
  return absl::OkStatus();
}

absl::Status LoadedModel::PlanWeights(const WeightSource& source, const ModelOptions& options) {
  header_only_ = true;
  auto model = std::make_unique<Model>();
  LLM_ASSIGN_OR_RETURN(model->config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(model->kernels, FindKernels(options.kernels));
  LLM_ASSIGN_OR_RETURN(weights_bytes_, WeightsBytes(source, model->config, *model->kernels));
  model_ = std::move(model);
  return absl::OkStatus();
}

absl::Status LoadedModel::LoadText(const WeightSource& source, const ModelOptions& options) {
  const Metadata& metadata = source.metadata();
  LLM_ASSIGN_OR_RETURN(TokenizerSpec spec, TokenizerSpecFromGguf(metadata));
  LLM_ASSIGN_OR_RETURN(tokenizer_, Tokenizer::Create(std::move(spec)));
  const absl::StatusOr<absl::string_view> chat = metadata.GetString("tokenizer.chat_template");
  if (chat.ok()) {
    ChatTemplateLimits limits;
    limits.max_template_bytes = options.max_template_bytes;
    absl::StatusOr<std::unique_ptr<ChatTemplate>> parsed = ChatTemplate::Parse(*chat, limits);
    // A model whose template we cannot read still completes text; chat prompts say why it is not
    // used.
    if (parsed.ok()) {
      chat_template_ = *std::move(parsed);
    } else {
      text_.chat_template_error = std::string(parsed.status().message());
      options.logger.Warning("the chat template is not used: ", text_.chat_template_error);
    }
  }
  text_.tokenizer = tokenizer_.get();
  text_.chat_template = chat_template_.get();
  text_.end_ids = EndIds(metadata, *tokenizer_);
  return absl::OkStatus();
}

}  // namespace llm
