// Quantising comes before everything that reads the file, so that sizes, packs and listings follow
// from what it makes.
#include "src/engine/open_source.h"

#include <utility>

#include "src/base/status_macros.h"
#include "src/loader/pack_reader.h"
#include "src/model/quantized_file.h"

namespace llm {

absl::StatusOr<OpenedSource> OpenSource(std::unique_ptr<ModelFile> file,
                                        const ModelOptions& options) {
  LLM_ASSIGN_OR_RETURN(QuantizedFile quantized,
                       QuantizeFile(std::move(file), options.quantize, options.limits));
  OpenedSource opened;
  opened.encode_ns = std::move(quantized.encode_ns);
  LLM_ASSIGN_OR_RETURN(opened.source, OpenWeightSource(std::move(quantized.file), options.limits));
  return opened;
}

}  // namespace llm
