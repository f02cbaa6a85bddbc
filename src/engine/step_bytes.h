// How many bytes of memory a step moves, by arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "src/scheduler/step_plan.h"

namespace llm {

// Bytes of a model's parts; all 0 where nobody knows (scripted runners).
struct ByteModel {
  uint64_t layer_weight_bytes = 0;  // all layers and norms but experts: read once a step
  uint64_t expert_bytes = 0;        // of one expert, in all layers that have experts
  int num_experts = 0;
  int experts_per_token = 0;
  uint64_t head_bytes = 0;           // read once by a step that wants logits
  uint64_t embedding_row_bytes = 0;  // read for each token
  struct Group {
    int window = 0;            // as KvGroupSpec
    uint64_t token_bytes = 0;  // keys and values of one token in all layers of the group
  };
  std::vector<Group> groups;  // [kv_groups]
};

struct StepBytes {
  uint64_t weights_read = 0;
  uint64_t kv_read = 0;
  uint64_t kv_written = 0;
};

// A chunk reads each key and value that one of its queries sees once, and writes its own.
// Activations are left out: they are small and stay in the processor's caches. Experts are counted
// as if tokens chose among them evenly.
StepBytes PredictBytes(const ByteModel& model, const StepPlan& plan);

}  // namespace llm
