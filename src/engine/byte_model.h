// What a real model's steps move, and how fast this machine reads.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "src/base/clock.h"
#include "src/base/thread_pool.h"
#include "src/engine/step_bytes.h"
#include "src/model/model.h"
#include "src/runner/runner_options.h"

namespace llm {

absl::StatusOr<ByteModel> MakeByteModel(const Model& model, const RunnerOptions& options);

// Of a model whose weights were not read: all of them count as those of layers.
ByteModel SimulatedByteModel(const ModelConfig& config, const RunnerOptions& options,
                             uint64_t weights_bytes);

// Bytes per second at which all threads of the pool together read the weights: the best of several
// stretches, each byte at most once, for some 2 ms on `clock`. 0 under 16 MiB of weights, which
// caches could hold, or when the clock stands still.
uint64_t MeasureReadBandwidth(const Weights& weights, const Clock& clock, ThreadPool* pool);

}  // namespace llm
