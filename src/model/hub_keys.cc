// First the tables, those of all families and the family's own, then what its function says.
#include "src/model/hub_keys.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

constexpr absl::string_view kWhere = "config.json";

constexpr HubKey kSharedKeys[] = {
    {"num_hidden_layers", "block_count", HubValue::kInt},
    {"max_position_embeddings", "context_length", HubValue::kInt},
    {"hidden_size", "embedding_length", HubValue::kInt},
    {"intermediate_size", "feed_forward_length", HubValue::kInt},
    {"num_attention_heads", "attention.head_count", HubValue::kInt},
    {"num_key_value_heads", "attention.head_count_kv", HubValue::kInt},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", HubValue::kFloat},
    {"vocab_size", "vocab_size", HubValue::kInt},
};

// What training, generation and other libraries read. Token ids are the tokenizer's business.
constexpr const char* kSharedHarmless[] = {
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "cache_implementation",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "output_attentions",
    "output_hidden_states",
    "pad_token_id",
    "pretraining_tp",
    "return_dict",
    "torch_dtype",
    "transformers_version",
    "unsloth_fixed",
    "use_cache",
    "_attn_implementation_autoset",
    "_name_or_path",
};

void MapHeadDim(HubConfig* config, HubExtras* extras) {
  if (!config->Has("head_dim")) return;
  const int64_t head_dim = config->Int("head_dim");
  extras->Set("attention.key_length", "head_dim", head_dim);
  extras->Set("attention.value_length", "head_dim", head_dim);
}

// Adds a family's rows to `extras`, so that all keys are written in one place.
void MapTable(absl::Span<const HubKey> keys, HubConfig* config, HubExtras* extras) {
  for (const HubKey& key : keys) {
    if (!config->Has(key.hub)) continue;  // where one is needed, its reader will say so
    switch (key.value) {
      case HubValue::kInt:
        extras->Set(key.gguf, key.hub, config->Int(key.hub));
        break;
      case HubValue::kFloat:
        extras->Set(key.gguf, key.hub, config->Float(key.hub));
        break;
      case HubValue::kBool:
        extras->Set(key.gguf, key.hub, config->BoolOr(key.hub, false));
        break;
    }
  }
}

class KeyWriter {
 public:
  KeyWriter(std::string key, GgufWriter* writer) : key_(std::move(key)), writer_(*writer) {}

  void operator()(int64_t value) { writer_.AddInt(key_, value); }
  void operator()(double value) { writer_.AddFloat(key_, value); }
  void operator()(bool value) { writer_.AddBool(key_, value); }
  void operator()(const std::string& value) { writer_.AddString(key_, value); }
  void operator()(const std::vector<int32_t>& value) { writer_.AddInts(key_, value); }

 private:
  const std::string key_;
  GgufWriter& writer_;
};

absl::StatusOr<const HubModel*> FindModel(HubConfig* config) {
  const std::string type = config->TextOr("model_type", "");
  LLM_RETURN_IF_ERROR(config->status());
  const HubModel* model = FindHubModel(type);
  if (model != nullptr) return model;
  config->Refuse("model_type", absl::StrCat(type.empty() ? "missing" : Printable(type),
                                            ", supported are ", HubModelNames()));
  return config->status();
}

}  // namespace

absl::StatusOr<HubHeader> WriteHubKeys(const JsonDocument& document, GgufWriter* writer) {
  if (absl::Status object = document.root().CheckType(JsonType::kObject); !object.ok()) {
    return At(kWhere, object);
  }
  HubConfig config(document.root(), std::string(kWhere));
  HubHeader header;
  LLM_ASSIGN_OR_RETURN(header.model, FindModel(&config));
  MapTable(kSharedKeys, &config, &header.extras);
  MapTable(header.model->keys, &config, &header.extras);
  MapHeadDim(&config, &header.extras);
  header.extras.tied_embeddings =
      config.BoolOr("tie_word_embeddings", header.model->ties_by_default);
  header.extras.num_layers = config.IntOr("num_hidden_layers", 0);
  for (const char* key : kSharedHarmless) config.Harmless(key);
  for (const char* key : header.model->harmless) config.Harmless(key);
  header.model->map(&config, &header.extras);
  if (!header.model->own_quantization) MapQuantization(&config, &header.extras);
  config.RefuseUnread();
  LLM_RETURN_IF_ERROR(config.status());

  writer->AddString("general.architecture", header.model->architecture);
  header.names.Add("general.architecture", "model_type");
  const auto name = [&](absl::string_view key) {
    return absl::StrCat(header.model->architecture, ".", key);
  };
  for (const HubExtraKey& key : header.extras.keys) {
    std::visit(KeyWriter(name(key.gguf), writer), key.value);
    header.names.Add(name(key.gguf), key.hub);
  }
  // Also those that are missing.
  for (const HubKey& key : kSharedKeys) header.names.Add(name(key.gguf), key.hub);
  for (const HubKey& key : header.model->keys) header.names.Add(name(key.gguf), key.hub);
  return header;
}

}  // namespace llm
