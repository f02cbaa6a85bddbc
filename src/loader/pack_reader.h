// Opens a pack (pack_format.h) as a WeightSource, and tells packs from GGUF files.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"
#include "src/loader/weight_source.h"

namespace llm {

// Whether the file begins as a pack does; false when it cannot be read.
bool IsPack(const ModelFile& file);

// Reads and checks all that comes before the weights. INVALID_ARGUMENT with what, which and where
// ("pack x.llmpack: tensor blk.3.attn_q.weight: ...") for a malformed file, DATA_LOSS when it is
// not whole or its header is damaged, FAILED_PRECONDITION for another version of the format.
// Whether the layout is one that a backend here reads is for the loading of weights to say.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenPack(std::unique_ptr<ModelFile> file,
                                                       const LoaderLimits& limits);

// One of the two.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeightSource(std::unique_ptr<ModelFile> file,
                                                               const LoaderLimits& limits);

}  // namespace llm
