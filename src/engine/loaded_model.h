// A model read from a file: packed weights, tokenizer, chat template and end ids. Immutable;
// engines share it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/base/log.h"
#include "src/engine/model_text.h"
#include "src/model/model.h"
#include "src/tensor/buffer.h"

namespace llm {

struct ModelOptions {
  int num_threads = 0;  // for loading; 0: the cores that this process may use
  bool float_activations = false;
  std::string kernels;            // empty: the fastest that this machine runs
  uint64_t max_memory_bytes = 0;  // 0: no limit
  Logger logger;
};

class LoadedModel {
 public:
  // Errors as llm_model_open names them.
  static absl::StatusOr<std::shared_ptr<const LoadedModel>> Open(const std::string& path,
                                                                 const ModelOptions& options);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const Model& model() const { return *model_; }
  const ModelText& text() const { return text_; }
  const std::string& name() const { return name_; }
  bool float_activations() const { return float_activations_; }
  uint64_t weights_bytes() const { return model_->weights.storage.size(); }

 private:
  LoadedModel() = default;
  absl::Status LoadText(const WeightSource& source, const Logger& logger);

  Allocator allocator_;  // outlives the weights
  std::unique_ptr<const Model> model_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const ChatTemplate> chat_template_;
  ModelText text_;
  std::string name_;
  bool float_activations_ = false;
};

}  // namespace llm
