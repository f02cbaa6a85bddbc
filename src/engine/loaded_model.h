// A model read from a file: packed weights, tokenizer, chat template and end ids. Immutable;
// engines share it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "src/base/log.h"
#include "src/engine/host_hooks.h"
#include "src/engine/model_listing.h"
#include "src/engine/model_text.h"
#include "src/engine/open_times.h"
#include "src/engine/sampling_defaults.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"
#include "src/model/model.h"
#include "src/model/quantize_options.h"
#include "src/tensor/buffer.h"

namespace llm {

// As llm_progress_callback.
using ProgressCallback = int32_t (*)(void* user_data, uint64_t done_bytes, uint64_t total_bytes);

enum class DeviceChoice : int32_t { kDefault, kCpu, kCuda };

struct ModelOptions {
  DeviceChoice device = DeviceChoice::kDefault;
  uint32_t device_index = 0;  // of the GPUs that can be used
  int num_threads = 0;        // for loading; 0: the cores that this process may use
  bool float_activations = false;
  std::string kernels;            // empty: the fastest that the device runs
  uint64_t max_memory_bytes = 0;  // 0: no limit
  Logger logger;
  LoaderLimits limits;
  uint64_t max_template_bytes = ChatTemplateLimits().max_template_bytes;
  ProgressCallback progress = nullptr;
  void* progress_user_data = nullptr;
  HostHooks host;            // its clock is not used
  bool header_only = false;  // no weights are read, and no engine can serve the model
  bool map_pack = false;     // these two as WeightsOptions has them
  bool verify_pack = false;
  QuantizeOptions quantize;
  bool simulated = false;  // likewise no weights; engines on it compute nothing
};

class LoadedModel {
 public:
  // Errors as llm_model_open names them; CANCELLED when options.progress asks for it. The file is
  // read during the call alone.
  static absl::StatusOr<std::shared_ptr<const LoadedModel>> Open(std::unique_ptr<ModelFile> file,
                                                                 const ModelOptions& options);
  static absl::StatusOr<std::shared_ptr<const LoadedModel>> Open(const std::string& path,
                                                                 const ModelOptions& options);
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  const Model& model() const { return *model_; }
  const ModelText& text() const { return text_; }
  const SamplingDefaults& sampling() const { return sampling_; }
  const std::string& name() const { return name_; }
  bool float_activations() const { return float_activations_; }
  bool header_only() const { return header_only_; }
  bool simulated() const { return simulated_; }
  uint64_t weights_bytes() const { return weights_bytes_; }  // not read: what they would take
  const ModelListing& listing() const { return listing_; }
  const OpenTimes& times() const { return times_; }  // of the model alone
  // Of its weights as the kernels read them and of its metadata. Reads all weights, once.
  uint64_t Identity() const;

 private:
  LoadedModel() = default;
  absl::Status LoadText(const WeightSource& source, const ModelOptions& options);
  absl::Status LoadWeights(const WeightSource& source, const ModelOptions& options);
  absl::Status PlanWeights(const WeightSource& source, const ModelOptions& options);

  Allocator allocator_;  // outlives the weights
  std::unique_ptr<const Model> model_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const ChatTemplate> chat_template_;
  ModelText text_;
  SamplingDefaults sampling_;
  std::string name_;
  ModelListing listing_;
  uint64_t weights_bytes_ = 0;
  bool float_activations_ = false;
  bool header_only_ = false;
  bool simulated_ = false;
  OpenTimes times_;
  uint64_t metadata_checksum_ = 0;
  mutable std::atomic<uint64_t> identity_{0};  // 0: not computed
};

}  // namespace llm
