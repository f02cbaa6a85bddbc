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
void ConfigureGemma2(ConfigReader* reader, ModelConfig* config);
void ConfigureGemma3(ConfigReader* reader, ModelConfig* config);
void ConfigurePhi3(ConfigReader* reader, ModelConfig* config);
void ConfigureGptOss(ConfigReader* reader, ModelConfig* config);
void ConfigureDeepseek2(ConfigReader* reader, ModelConfig* config);
void ConfigureQwen2(ConfigReader* reader, ModelConfig* config);
void ConfigureQwen3(ConfigReader* reader, ModelConfig* config);
void ConfigureQwen3Moe(ConfigReader* reader, ModelConfig* config);

// What the Gemma families share; layers_of_27b tells the size whose queries are scaled otherwise.
void ReadGemma(ConfigReader* reader, int layers_of_27b, ModelConfig* config);

// What most families share: sizes, norm_eps, head_dim and attention_scale = 1 / sqrt(head_dim).
void ReadSizes(ConfigReader* reader, ModelConfig* config);
// The same without what a head is.
void ReadLayerSizes(ConfigReader* reader, ModelConfig* config);

// How a model was stretched beyond the context that it was first trained for.
struct RopeScaling {
  enum Type { kNone, kLinear, kYarn, kLlama3, kLongrope };
  Type type = kNone;
  float factor = 1.0f;
  int original_context = 0;  // tokens; set where the type needs it
  float magnitude = 1.0f;    // of yarn
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  bool truncate = true;  // yarn's bounds are whole pairs of dimensions
  float low_freq_factor = 1.0f;
  float high_freq_factor = 4.0f;
};

// <namespace>.rope.scaling.*; `truncate_yarn` where no key says it. UNIMPLEMENTED for a type that
// is not listed above.
RopeScaling ReadRopeScaling(ConfigReader* reader, bool truncate_yarn = true);

// inv_freq[i] = base^(-2 i / rope_dim), scaled. Longrope's factors are applied later: files hold
// them as tensors.
RopeVariant MakeRope(int rope_dim, float base, const RopeScaling& scaling);

// Llama's rows of q and k: permuted by GGUF's converter, in halves where <namespace>.rope.halves
// says that they are as in the original checkpoint.
RopePairs ReadRopePairs(ConfigReader* reader);

// expert_*: all layers but the leading dense ones become mixtures when there are experts.
// `defaults` has what no key says.
void ReadExperts(ConfigReader* reader, RouterRule defaults, ModelConfig* config);

// attention.sliding_window for the layers i with (i + 1) % pattern != 0; pattern 0: for all of
// them, if there is such a key and it is not 0. attention.sliding_window_pattern is a number, or an
// array that says it layer by layer.
void ReadWindows(ConfigReader* reader, int default_pattern, ModelConfig* config);

}  // namespace llm
