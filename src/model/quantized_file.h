// A model file with other weights: the GGUF file that quantising or pruning it would write, made as
// it is read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"
#include "src/model/quantize_options.h"

namespace llm {

struct QuantizedFile {
  std::unique_ptr<ModelFile> file;
  // What threads have spent encoding until now, as part of the reads of `file`.
  std::shared_ptr<const std::atomic<int64_t>> encode_ns;
};

// `file` is a GGUF file or a directory's. Reads its header alone; weights are read and encoded row
// by row when the result is read. Where `options` asks for nothing, the file itself.
// INVALID_ARGUMENT, naming the option or the tensor: a pack; a head of its own where the model has
// none; rows that are no whole blocks; nothing to quantise, since it is in low bits already and
// `requantize` is off. Else errors as of an open.
absl::StatusOr<QuantizedFile> QuantizeFile(std::unique_ptr<ModelFile> file,
                                           const QuantizeOptions& options,
                                           const LoaderLimits& limits);

}  // namespace llm
