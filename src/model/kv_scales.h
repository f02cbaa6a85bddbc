// Scales of fp8 keys and values that a checkpoint was calibrated with: one for the keys and one for
// the values of each layer.
#pragma once

#include "absl/status/statusor.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/safetensors_set.h"
#include "src/loader/weight_source.h"
#include "src/model/hub_config.h"
#include "src/model/model_config.h"

namespace llm {

// Takes "model.layers.{}.self_attn.k_scale" and its like out of the set and writes them as metadata
// of our own ("kv_cache.key_scales"). NOT_FOUND where a layer has none although another one has;
// INVALID_ARGUMENT for one that is no finite number above 0: by name.
absl::Status TakeKvScales(int64_t num_layers, SafetensorsSet* set, GgufWriter* writer);

// What `writer` wrote. INVALID_ARGUMENT names the key.
absl::StatusOr<KvScales> ReadKvScales(const Metadata& metadata, int num_layers);

// kv_cache_scheme of a quantization_config; other schemes than fp8 with a scale a tensor are
// refused.
void MapKvCacheScheme(HubConfig* quantization);

}  // namespace llm
