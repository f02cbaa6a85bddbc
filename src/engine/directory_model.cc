// Config, tensors, tokenizer: each becomes a part of one GGUF header. The result is opened once as
// a check, while messages can still say what the directory calls things.
#include "src/engine/directory_model.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/engine/directory_text.h"
#include "src/loader/composed_file.h"
#include "src/loader/gguf_types.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/model_directory.h"
#include "src/loader/safetensors_set.h"
#include "src/loader/split_gguf.h"
#include "src/model/hub_keys.h"
#include "src/model/hub_tensors.h"
#include "src/model/kv_scales.h"
#include "src/model/model_config.h"
#include "src/model/weights.h"

namespace llm {
namespace {

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// Places the tensors one after the other and writes where; the parts follow, from 0 on.
std::vector<FilePart> PlaceTensors(const std::vector<HubTensorParts>& tensors, HubNames* names,
                                   GgufWriter* writer) {
  std::vector<FilePart> placed;
  uint64_t offset = 0;
  for (const HubTensorParts& tensor : tensors) {
    writer->AddTensor(tensor.name, tensor.format, tensor.shape, offset);
    names->Add(tensor.name, tensor.hub_name);
    for (FilePart part : tensor.parts) {
      part.begin += offset;
      placed.push_back(std::move(part));
    }
    offset = RoundUp(offset + tensor.size_bytes, GgufWriter::kAlignment);
  }
  return placed;
}

std::unique_ptr<ModelFile> Compose(const std::string& name, std::string header,
                                   std::vector<FilePart> data,
                                   std::vector<std::unique_ptr<ModelFile>> files) {
  for (FilePart& part : data) part.begin += header.size();
  FilePart first;
  first.size_bytes = header.size();
  first.derived = std::make_shared<HeldBytes>(std::move(header));
  data.insert(data.begin(), std::move(first));
  return std::make_unique<ComposedFile>(name, std::move(data), std::move(files));
}

// All that can be said from the header, in the words of the directory.
absl::Status Check(const ModelFile& file, const HubNames& names, const LoaderLimits& limits) {
  std::vector<FilePart> whole = {{.begin = 0, .size_bytes = file.size(), .file = &file}};
  auto view = std::make_unique<ComposedFile>(file.name(), std::move(whole),
                                             std::vector<std::unique_ptr<ModelFile>>());
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source,
                       OpenGguf(std::move(view), limits));
  const absl::StatusOr<ModelConfig> config = ReadModelConfig(*source);
  if (!config.ok()) return At("config.json", names.Explain(config.status()));
  LLM_ASSIGN_OR_RETURN(const KernelTable* kernels, FindKernels("reference"));
  return names.Explain(WeightsBytes(*source, *config, *kernels).status());
}

absl::StatusOr<std::unique_ptr<ModelFile>> OpenDirectory(const ModelDirectory& directory,
                                                         const LoaderLimits& limits) {
  GgufWriter writer;
  LLM_ASSIGN_OR_RETURN(const JsonDocument config,
                       directory.ReadJson("config.json", limits.max_header_bytes));
  LLM_ASSIGN_OR_RETURN(HubHeader header, WriteHubKeys(config, &writer));
  writer.AddString("general.name", BaseName(directory.path()));
  LLM_ASSIGN_OR_RETURN(SafetensorsSet set, OpenSafetensors(directory, limits));
  LLM_RETURN_IF_ERROR(TakeKvScales(header.extras.num_layers, &set, &writer));
  LLM_ASSIGN_OR_RETURN(const std::vector<HubTensorParts> tensors,
                       MapHubTensors(*header.model, header.extras, set));
  int64_t vocab_size = 0;
  for (const HubTensorParts& tensor : tensors) {
    if (tensor.name == "token_embd.weight") vocab_size = tensor.shape[0];
  }
  LLM_RETURN_IF_ERROR(WriteDirectoryText(directory, config, vocab_size, limits, &writer));
  std::vector<FilePart> parts = PlaceTensors(tensors, &header.names, &writer);
  std::unique_ptr<ModelFile> file =
      Compose(directory.path(), writer.Finish(), std::move(parts), std::move(set.files));
  LLM_RETURN_IF_ERROR(Check(*file, header.names, limits));
  return file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenModelPath(const std::string& path,
                                                         const LoaderLimits& limits) {
  if (!IsDirectory(path)) return OpenGgufParts(path, limits);
  LLM_ASSIGN_OR_RETURN(const ModelDirectory directory, ModelDirectory::Open(path));
  absl::StatusOr<std::unique_ptr<ModelFile>> file = OpenDirectory(directory, limits);
  if (!file.ok()) return At(absl::StrCat("model directory ", directory.path()), file.status());
  return file;
}

}  // namespace llm
