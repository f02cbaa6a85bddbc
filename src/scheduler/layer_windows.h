// The layers of a model by how many keys a query of theirs sees.
#pragma once

#include <vector>

#include "src/cache/kv_groups.h"
#include "src/scheduler/step_plan.h"
#include "src/scheduler/step_work.h"

namespace llm {

class LayerWindows {
 public:
  explicit LayerWindows(const std::vector<KvGroupSpec>& groups);

  // The work of tokens [begin, begin + length) of a sequence.
  StepWork Chunk(int32_t begin, int32_t length) const;
  StepWork Step(const StepPlan& plan) const;

 private:
  struct Window {
    int tokens = 0;    // 0: all
    double share = 0;  // of the layers
  };
  std::vector<Window> windows_;
};

}  // namespace llm
