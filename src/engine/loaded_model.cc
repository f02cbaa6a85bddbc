// From a path to a model that can be served, in the order in which a mistake is cheapest to find:
// header, tokenizer, weights. A pack's tokenizer is made while its weights are read.
#include "src/engine/loaded_model.h"

#include <utility>

#include "absl/strings/match.h"
#include "src/base/clock.h"
#include "src/base/float_state.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"
#include "src/engine/check_vocabulary.h"
#include "src/engine/choose_backend.h"
#include "src/engine/directory_model.h"
#include "src/engine/end_ids.h"
#include "src/engine/load_weights.h"
#include "src/engine/open_source.h"
#include "src/engine/random.h"
#include "src/engine/tokenizer_from_gguf.h"
#include "src/tensor/host_copy.h"

namespace llm {
namespace {

// Of exact values, which a listing cuts and rounds. Keys and values do not depend on the tokenizer.
uint64_t ChecksumOf(const Metadata& metadata) {
  Xxh64 hash;
  const auto add = [&hash](const void* data, size_t size) {
    hash.Add(&size, sizeof(size));
    if (size > 0) hash.Add(data, size);
  };
  for (const absl::string_view key : metadata.Keys()) {
    if (absl::StartsWith(key, "tokenizer.")) continue;
    add(key.data(), key.size());
    if (const auto x = metadata.GetInt(key); x.ok()) add(&*x, sizeof(*x));
    if (const auto x = metadata.GetFloat(key); x.ok()) add(&*x, sizeof(*x));
    if (const auto x = metadata.GetBool(key); x.ok()) {
      const unsigned char bit = *x ? 1 : 0;
      add(&bit, sizeof(bit));
    }
    if (const auto x = metadata.GetString(key); x.ok()) add(x->data(), x->size());
    if (const auto x = metadata.GetFloats(key); x.ok()) add(x->data(), x->size() * sizeof(float));
    if (const auto x = metadata.GetInts(key); x.ok()) add(x->data(), x->size() * sizeof(int64_t));
  }
  return hash.Digest();
}

}  // namespace

absl::StatusOr<std::shared_ptr<const LoadedModel>> LoadedModel::Open(const std::string& path,
                                                                     const ModelOptions& options) {
  LLM_ASSIGN_OR_RETURN(std::unique_ptr<ModelFile> file, OpenModelPath(path, options.limits));
  return Open(std::move(file), options);
}

absl::StatusOr<std::shared_ptr<const LoadedModel>> LoadedModel::Open(
    std::unique_ptr<ModelFile> file, const ModelOptions& options) {
  const ScopedFloatState float_state;  // norms and rope frequencies are converted here
  const std::string where = file->name();
  const SteadyClock clock;
  const int64_t start_ns = clock.NowNs();
  LLM_ASSIGN_OR_RETURN(const OpenedSource opened, OpenSource(std::move(file), options));
  const WeightSource* source = opened.source.get();
  std::shared_ptr<LoadedModel> loaded(new LoadedModel());
  loaded->float_activations_ = options.float_activations;
  loaded->allocator_.set_limit_bytes(options.max_memory_bytes);
  loaded->allocator_.set_hooks(options.host.allocator);
  const absl::StatusOr<absl::string_view> name = source->metadata().GetString("general.name");
  if (name.ok()) loaded->name_ = std::string(*name);
  OpenTimes& times = loaded->times_;
  times.header_ns = clock.NowNs() - start_ns;
  const bool reads_weights = !options.header_only && !options.simulated;
  if (!reads_weights || source->packed() == nullptr) {
    LLM_RETURN_IF_ERROR(loaded->LoadText(*source, options));
    LLM_ASSIGN_OR_RETURN(const ModelConfig read, ReadModelConfig(*source));
    LLM_RETURN_IF_ERROR(CheckVocabulary(where, *loaded->tokenizer_, read.vocab_size));
  }
  LLM_RETURN_IF_ERROR(reads_weights ? loaded->LoadWeights(*source, options)
                                    : loaded->PlanWeights(*source, options));
  const ModelConfig& config = loaded->model_->config;
  LLM_RETURN_IF_ERROR(CheckVocabulary(where, *loaded->tokenizer_, config.vocab_size));
  loaded->text_.vocab_size = config.vocab_size;
  loaded->listing_ = ListModel(*source);
  loaded->metadata_checksum_ = ChecksumOf(source->metadata());
  loaded->text_.hidden_size = config.hidden_size;
  const int64_t encode_ns = opened.encode_ns->load();  // inside reads
  times.read_ns = loaded->model_->weights.read_ns - encode_ns;
  times.repack_ns = loaded->model_->weights.repack_ns + encode_ns;
  times.check_ns = loaded->model_->weights.check_ns;
  times.model_ns = clock.NowNs() - start_ns;
  options.logger.Info("model ", loaded->name_, ": ", config.architecture, ", ", config.num_layers,
                      " layers, ", loaded->weights_bytes(), " bytes of weights, kernels ",
                      loaded->model_->kernels->name,
                      loaded->model_->device != nullptr ? " on " : "",
                      loaded->model_->device != nullptr ? loaded->model_->device->name() : "");
  return std::shared_ptr<const LoadedModel>(std::move(loaded));
}

absl::Status LoadedModel::LoadWeights(const WeightSource& source, const ModelOptions& options) {
  const auto report = [&](uint64_t done_bytes, uint64_t total_bytes) {
    return ReportProgress(options, "open", done_bytes, total_bytes);
  };
  std::function<absl::Status()> text;
  if (tokenizer_ == nullptr) text = [&] { return LoadText(source, options); };
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(const Backend backend, ChooseBackend(options, source, config));
  if (backend.device != nullptr) {
    LLM_ASSIGN_OR_RETURN(const size_t bytes, WeightsBytes(source, config, *backend.kernels));
    LLM_RETURN_IF_ERROR(CheckDeviceRoom(*backend.device, bytes, "the weights"));
  }
  LLM_ASSIGN_OR_RETURN(
      model_, LoadModelWith(options, backend, source, &allocator_, report, std::move(text)));
  weights_bytes_ = model_->weights.bytes.size();
  return absl::OkStatus();
}

absl::Status LoadedModel::PlanWeights(const WeightSource& source, const ModelOptions& options) {
  header_only_ = options.header_only;
  simulated_ = options.simulated;
  auto model = std::make_unique<Model>();
  LLM_ASSIGN_OR_RETURN(model->config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(const Backend backend, ChooseBackend(options, source, model->config));
  model->kernels = backend.kernels;
  LLM_ASSIGN_OR_RETURN(weights_bytes_, WeightsBytes(source, model->config, *model->kernels));
  model_ = std::move(model);
  return absl::OkStatus();
}

absl::Status LoadedModel::LoadText(const WeightSource& source, const ModelOptions& options) {
  const SteadyClock clock;
  const int64_t start_ns = clock.NowNs();
  const Metadata& metadata = source.metadata();
  LLM_ASSIGN_OR_RETURN(tokenizer_, TokenizerFromGguf(metadata));
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
  LLM_ASSIGN_OR_RETURN(sampling_, SamplingDefaultsFromGguf(metadata));
  times_.tokenizer_ns = clock.NowNs() - start_ns;
  return absl::OkStatus();
}

// Two threads that ask at once both compute it.
uint64_t LoadedModel::Identity() const {
  uint64_t identity = identity_.load();
  if (identity != 0) return identity;
  Xxh64 hash;
  hash.Add(&metadata_checksum_, sizeof(metadata_checksum_));
  const absl::Status read =
      VisitOnHost(model_->device.get(), model_->weights.bytes,
                  [&](absl::Span<const std::byte> piece) { hash.Add(piece.data(), piece.size()); });
  if (!read.ok()) return DrawRandom();  // a lost device: nothing that is saved may match
  identity = std::max<uint64_t>(1, hash.Digest());
  identity_.store(identity);
  return identity;
}

}  // namespace llm
