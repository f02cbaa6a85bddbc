// Rows of a tensor in another format, encoded as they are read.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "src/loader/composed_file.h"
#include "src/loader/model_file.h"
#include "src/loader/weight_source.h"
#include "src/model/quantize_options.h"

namespace llm {

struct EncodedTensor {
  const ModelFile* file = nullptr;  // holds both tensors; outlives the rows
  TensorInfo from;
  Quantization to;
  Pruning pruning = Pruning::kNone;
  float pruned_part = 0;
};

// REQUIRES: CanEncode(tensor.to.format). Adds the time that encoding takes to *encode_ns.
std::shared_ptr<const DerivedBytes> EncodedRows(const EncodedTensor& tensor,
                                                std::shared_ptr<std::atomic<int64_t>> encode_ns);

}  // namespace llm
