// What could not be opened afterwards is refused before anything is written.
#include "src/engine/save_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/float_state.h"
#include "src/base/status_macros.h"
#include "src/engine/check_vocabulary.h"
#include "src/engine/load_weights.h"
#include "src/engine/open_source.h"
#include "src/engine/tokenizer_from_gguf.h"
#include "src/model/pack_writer.h"

namespace llm {
namespace {

absl::Status CheckTokenizer(const std::string& where, const WeightSource& source) {
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                       TokenizerFromGguf(source.metadata()));
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(source));
  return CheckVocabulary(where, *tokenizer, config.vocab_size);
}

}  // namespace

absl::Status SaveModel(std::unique_ptr<ModelFile> file, const ModelOptions& options,
                       const std::string& path) {
  const ScopedFloatState float_state;  // as in LoadedModel::Open
  const std::string where = file->name();
  LLM_ASSIGN_OR_RETURN(const OpenedSource opened, OpenSource(std::move(file), options));
  const WeightSource* source = opened.source.get();
  if (source->packed() != nullptr) {
    return absl::FailedPreconditionError(absl::StrCat(where, ": is a pack already"));
  }
  LLM_RETURN_IF_ERROR(CheckTokenizer(where, *source));
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*source));
  LLM_ASSIGN_OR_RETURN(Backend backend, ChooseBackend(options, *source, config));
  backend.device.reset();  // the image is made, and read, in host memory
  Allocator allocator;
  allocator.set_limit_bytes(options.max_memory_bytes);
  allocator.set_hooks(options.host.allocator);
  // Reading is one half of the progress, writing the other, each in its own bytes.
  uint64_t read_bytes = 0;
  const auto report = [&](uint64_t done, uint64_t total) {
    return ReportProgress(options, "save", done, total);
  };
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                       LoadModelWith(options, backend, *source, &allocator,
                                     [&](uint64_t done_bytes, uint64_t total_bytes) {
                                       read_bytes = total_bytes;
                                       return report(done_bytes, 2 * total_bytes);
                                     }));
  return WritePack(*source, *model, path, [&](uint64_t done_bytes, uint64_t total_bytes) {
    const double share = static_cast<double>(done_bytes) / static_cast<double>(total_bytes);
    const auto written = static_cast<uint64_t>(share * static_cast<double>(read_bytes));
    return report(read_bytes + std::min(written, read_bytes), 2 * read_bytes);
  });
}

}  // namespace llm
