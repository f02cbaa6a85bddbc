// The memory of a runner: batch arrays, the decoder's intermediate values, logits and their
// measures.
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "src/model/arena.h"
#include "src/model/decoder_workspace.h"
#include "src/runner/batch_builder.h"
#include "src/runner/draw_builder.h"
#include "src/runner/runner_options.h"
#include "src/runner/step_results.h"
#include "src/tensor/device.h"

namespace llm {

struct RunnerWorkspace {
  std::unique_ptr<BatchBuilder> batch_builder;
  DecoderShape decoder_shape;
  DecoderWorkspace decoder;
  StepResults results;  // where kernels write them
  // Where the host reads them: the same, or copies out of a device, of its steps in turns.
  StepResults host_results[DeviceStream::kNumMarks];
  absl::Span<std::byte> library;  // of linear layers; empty: batch_invariant
  // A device's:
  UploadMemory uploads;
  std::unique_ptr<BatchBuilder> wanted_builder;  // null: no step runs ahead
  std::unique_ptr<DrawBuilder> draw_builder;
  float* edited_logits = nullptr;  // [max_edits], as they were
};

// Planning and creation both come here, so that the plan cannot differ from what is allocated.
// Without a device both arenas are the same one.
RunnerWorkspace LayOutRunner(const ModelConfig& config, const KernelTable& kernels,
                             const RunnerOptions& options, int num_threads, Arena* host,
                             Arena* device);

}  // namespace llm
