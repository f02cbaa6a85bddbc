// What a model family looks like in a hub's directory, and what its parts are called in GGUF, whose
// vocabulary the rest of this library speaks. One description per family, in architectures/.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/model/hub_config.h"

namespace llm {

// A value of config.json that is a key of GGUF as it stands.
enum class HubValue { kInt, kFloat, kBool };
struct HubKey {
  const char* hub;   // "num_hidden_layers"
  const char* gguf;  // "block_count", in the architecture's namespace
  HubValue value;
};

// How the tensors of one hub name become one of GGUF's.
enum class HubForm {
  kPlain,
  kExpert,   // the second number is the expert: [rows, cols] each, together [experts, rows, cols]
  kUnused,   // computed anew from the config, or read with another one
  kOnePlus,  // a vector w that the layer takes as 1 + w
  kEven,     // of [parts, elements]: every second element
  kOdd,
  kTransposed,      // of [parts, cols, rows]: [parts, rows, cols]
  kTransposedEven,  // every second row of that
  kTransposedOdd,
  kMxfp4,  // of [parts, rows, blocks, 16] beside "..._scales": [parts, rows, blocks * 32]
  kMxfp4Even,
  kMxfp4Odd,
  kQuantized,  // as HubQuantization says
  kKeyRows,    // of [heads * (key_rows + value_rows), cols]: [heads, cols, key_rows], transposed
  kValueRows,  // [heads, value_rows, cols]
};

// Names with {} for each number in them. A name stands for itself, or without ".weight" and ".bias"
// for both. One hub name may have several rows.
struct HubTensor {
  const char* hub;   // "model.layers.{}.self_attn.q_proj"
  const char* gguf;  // "blk.{}.attn_q"
  HubForm form = HubForm::kPlain;
};

// How a checkpoint holds its linear layers in low bits.
enum class HubQuantization {
  kNone,
  kGptq,  // "qweight" of 4 or 8 bits, "scales", "qzeros", "g_idx"
  kAwq,   // "qweight" of 4 bits, "scales", "qzeros"
  kF8,    // "weight", "weight_scale" or "weight_scale_inv"
  // Of compressed-tensors only:
  kPacked,    // "weight_packed" of 4 or 8 bits, "weight_scale", "weight_zero_point", "weight_shape"
  kInt8,      // "weight", "weight_scale"
  kMxfp4,     // "weight_packed", "weight_scale"
  kMxfp8,     // "weight", "weight_scale"
  kNvfp4,     // "weight_packed", "weight_scale", "weight_global_scale"
  kSparse24,  // "compressed", "bitmask", "shape"
};

// A key of GGUF in the architecture's namespace, and what of the config it comes from.
struct HubExtraKey {
  std::string gguf;
  std::string hub;
  std::variant<int64_t, double, bool, std::string, std::vector<int32_t>> value;
};

// What `map` says beside the tables.
struct HubExtras {
  std::vector<HubExtraKey> keys;
  std::vector<std::pair<std::string, std::vector<float>>> vectors;  // tensors, by GGUF name
  std::set<std::string> biases;  // linear layers ("attn_q") that must have one; others must not
  // Tensors that must be there beside another one: "ffn_gate_inp", "exp_probs_b.bias".
  std::map<std::string, std::string> companions;
  bool tied_embeddings = false;
  HubQuantization quantization = HubQuantization::kNone;
  int quantized_bits = 0;           // of kPacked and kGptq
  bool has_zero_points = false;     // of kPacked, kGptq and kAwq; else they are all in the middle
  int zero_point_bias = 0;          // kGptq: the zero point less the stored one
  bool needs_input_groups = false;  // of integers: each layer has a g_idx
  int64_t block_rows = 0;           // kF8: weights that share a scale; 0: a row's or all of them
  int64_t block_cols = 0;
  int64_t num_layers = 0;
  int64_t num_drafting_layers = 0;  // behind the others; left out
  int64_t key_rows = 0;             // of a head, for kKeyRows and kValueRows
  int64_t value_rows = 0;

  bool Has(absl::string_view gguf) const {
    return std::any_of(keys.begin(), keys.end(),
                       [&](const HubExtraKey& key) { return key.gguf == gguf; });
  }
  // The last value of a key counts.
  template <typename T>
  void Set(absl::string_view gguf, absl::string_view hub, T value) {
    std::erase_if(keys, [&](const HubExtraKey& key) { return key.gguf == gguf; });
    keys.push_back({std::string(gguf), std::string(hub), std::move(value)});
  }
};

struct HubModel {
  const char* model_type = nullptr;             // of config.json
  const char* architecture = nullptr;           // general.architecture
  absl::Span<const HubKey> keys = {};           // beside those that all families share
  absl::Span<const char* const> harmless = {};  // likewise
  absl::Span<const HubTensor> tensors = {};     // likewise
  bool ties_by_default = false;   // tie_word_embeddings where config.json does not say it
  bool norms_lack_one = false;    // stored norms are w where the layer computes with 1 + w
  bool own_quantization = false;  // `map` reads quantization_config
  // Reads the keys that tables cannot say; errors stay in `config`.
  void (*map)(HubConfig* config, HubExtras* extras) = nullptr;
};

// Null for a model_type without a line in the table of architectures/hub_models.cc.
const HubModel* FindHubModel(absl::string_view model_type);
std::string HubModelNames();  // "llama, gemma3_text", for messages

// For `map`: the rotary keys in both styles (rope_theta and rope_scaling, or rope_parameters).
void MapRope(HubConfig* config, HubExtras* extras);
// The same of one section; `theta` is the base where the section has none.
void MapRopeOf(HubConfig* rope, double theta, HubExtras* extras);
// quantization_config, but for families that have their own.
void MapQuantization(HubConfig* config, HubExtras* extras);
// layer_types, where the config has it: which layers see a window.
void MapLayerTypes(HubConfig* config, HubExtras* extras);
// What the Gemma families share: their activation, no biases, the scale of queries.
void MapGemma(HubConfig* config, HubExtras* extras);

}  // namespace llm
