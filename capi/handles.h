// What the opaque handles of the C ABI are.
#pragma once

#include <memory>
#include <string>

#include "src/engine/completion_queue.h"
#include "src/engine/engine.h"
#include "src/engine/loaded_model.h"

struct llm_model {
  std::shared_ptr<const llm::LoadedModel> model;
};

struct llm_queue {
  std::shared_ptr<llm::CompletionQueue> queue;
  bool owned_by_engine = false;
};

struct llm_engine {
  llm_queue queue;  // what llm_engine_queue lends
  std::unique_ptr<llm::Engine> engine;
};
