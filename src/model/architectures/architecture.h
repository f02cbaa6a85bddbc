// Descriptions of model families: which keys a file of this family has, and what they mean. No
// forward pass of their own.
#pragma once

#include "absl/strings/string_view.h"
#include "src/model/config_reader.h"
#include "src/model/model_config.h"

namespace llm {

struct Architecture {
  const char* name;  // general.architecture
  // Reads every key of the namespace into `config`; errors stay in the reader. kv_groups,
  // vocab_size and tied_embeddings are filled in by the caller.
  void (*configure)(ConfigReader* reader, ModelConfig* config);
};

// Null for a name without a line in the table of architectures.cc.
const Architecture* FindArchitecture(absl::string_view name);
std::string ArchitectureNames();  // "llama, gemma3", for messages

// One file each.
void ConfigureLlama(ConfigReader* reader, ModelConfig* config);
void ConfigureGemma3(ConfigReader* reader, ModelConfig* config);

// What most families share: sizes, norm_eps, head_dim and attention_scale = 1 / sqrt(head_dim).
void ReadSizes(ConfigReader* reader, ModelConfig* config);

// <namespace>.rope.scaling.*: the number that positions are divided by. UNIMPLEMENTED for a type
// other than none and linear.
float ReadLinearRopeScaling(ConfigReader* reader);

// inv_freq[i] = base^(-2 i / rope_dim) / position_divisor
RopeVariant MakeRope(int rope_dim, float base, float position_divisor);

}  // namespace llm
