// The newer place of a chat template is a file of its own, and counts before the older one.
#include "src/engine/directory_text.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/sampling_defaults.h"
#include "src/engine/tokenizer_from_hub.h"
#include "src/engine/tokenizer_to_gguf.h"
#include "src/loader/gguf_types.h"
#include "src/tokenizer/tokenizer_spec_check.h"

namespace llm {
namespace {

constexpr absl::string_view kTemplateKey = "tokenizer.chat_template";

// An empty object where there is no such file.
absl::StatusOr<JsonDocument> ReadOptional(const ModelDirectory& directory, absl::string_view name,
                                          const LoaderLimits& limits) {
  if (!directory.Has(name)) return JsonDocument::Parse("{}");
  LLM_ASSIGN_OR_RETURN(JsonDocument document, directory.ReadJson(name, limits.max_header_bytes));
  if (absl::Status type = document.root().CheckType(JsonType::kObject); !type.ok()) {
    return At(name, type);
  }
  return document;
}

// A text, or a list of named ones, of which one is named "default".
absl::StatusOr<std::string> TemplateOf(JsonValue value) {
  if (!value.exists() || value.is_null()) return std::string();
  if (value.Is(JsonType::kArray)) {
    for (JsonValue v = value.first(); v.exists(); v = v.next()) {
      const absl::StatusOr<absl::string_view> name = v.Find("name").GetString();
      if (name.ok() && *name == "default") return TemplateOf(v.Find("template"));
    }
    return std::string();
  }
  LLM_ASSIGN_OR_RETURN(const absl::string_view text, value.GetString());
  return std::string(text);
}

absl::Status WriteTemplate(const ModelDirectory& directory, const JsonDocument& tokenizer_config,
                           const LoaderLimits& limits, GgufWriter* writer) {
  constexpr absl::string_view kFile = "chat_template.jinja";
  if (directory.Has(kFile)) {
    LLM_ASSIGN_OR_RETURN(const std::string text,
                         directory.ReadText(kFile, limits.max_string_bytes));
    writer->AddString(kTemplateKey, text);
    return absl::OkStatus();
  }
  const absl::StatusOr<std::string> text =
      TemplateOf(tokenizer_config.root().Find("chat_template"));
  if (!text.ok()) return At("tokenizer_config.json: key chat_template", text.status());
  if (!text->empty()) writer->AddString(kTemplateKey, *text);
  return absl::OkStatus();
}

// An id or a list of them.
absl::Status AddEndIds(JsonValue value, size_t num_tokens, std::set<int32_t>* ids) {
  if (!value.exists() || value.is_null()) return absl::OkStatus();
  if (value.Is(JsonType::kArray)) {
    for (JsonValue v = value.first(); v.exists(); v = v.next()) {
      if (v.Is(JsonType::kArray)) return absl::InvalidArgumentError("expected ids");
      LLM_RETURN_IF_ERROR(AddEndIds(v, num_tokens, ids));
    }
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(const int64_t id, value.GetInt());
  if (id < 0 || static_cast<uint64_t>(id) >= num_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(id, " is no id of the ", num_tokens, " tokens"));
  }
  ids->insert(static_cast<int32_t>(id));
  return absl::OkStatus();
}

absl::Status WriteEndIds(const JsonDocument& config, const JsonDocument& generation,
                         size_t num_tokens, GgufWriter* writer) {
  constexpr absl::string_view kKey = "eos_token_id";
  std::set<int32_t> ids;
  if (absl::Status a = AddEndIds(config.root().Find(kKey), num_tokens, &ids); !a.ok()) {
    return At("config.json: key eos_token_id", a);
  }
  if (absl::Status a = AddEndIds(generation.root().Find(kKey), num_tokens, &ids); !a.ok()) {
    return At("generation_config.json: key eos_token_id", a);
  }
  writer->AddInts(kEndIdsKey, std::vector<int32_t>(ids.begin(), ids.end()));
  return absl::OkStatus();
}

// A table of embeddings is often larger than the vocabulary, so that its rows divide well.
void PadTokens(int64_t vocab_size, TokenizerSpec* spec) {
  const auto size = static_cast<size_t>(vocab_size);
  if (size <= spec->tokens.size() || size > kMaxTokens) return;
  spec->tokens.resize(size);
  spec->types.resize(size, TokenType::kUnused);
  if (!spec->strips.empty()) spec->strips.resize(size);
}

}  // namespace

absl::Status WriteDirectoryText(const ModelDirectory& directory, const JsonDocument& config,
                                int64_t vocab_size, const LoaderLimits& limits,
                                GgufWriter* writer) {
  LLM_ASSIGN_OR_RETURN(const JsonDocument tokenizer,
                       directory.ReadJson("tokenizer.json", limits.max_header_bytes));
  LLM_ASSIGN_OR_RETURN(const JsonDocument tokenizer_config,
                       ReadOptional(directory, "tokenizer_config.json", limits));
  LLM_ASSIGN_OR_RETURN(const JsonDocument generation,
                       ReadOptional(directory, "generation_config.json", limits));
  LLM_ASSIGN_OR_RETURN(TokenizerSpec spec, TokenizerSpecFromHub(tokenizer, tokenizer_config));
  PadTokens(vocab_size, &spec);
  WriteTokenizer(spec, writer);
  LLM_RETURN_IF_ERROR(WriteEndIds(config, generation, spec.tokens.size(), writer));
  LLM_ASSIGN_OR_RETURN(const SamplingDefaults sampling, SamplingDefaultsFromHub(generation));
  WriteSamplingDefaults(sampling, writer);
  return WriteTemplate(directory, tokenizer_config, limits, writer);
}

}  // namespace llm
