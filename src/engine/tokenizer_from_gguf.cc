// Absent optional keys take the defaults that writers of GGUF files rely on: SentencePiece's for
// "llama", none for "gpt2".
#include "src/engine/tokenizer_from_gguf.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"
#include "src/engine/tokenizer_to_gguf.h"

namespace llm {
namespace {

std::string Key(absl::string_view name) { return absl::StrCat("tokenizer.ggml.", name); }

absl::StatusOr<int32_t> OptionalId(const Metadata& metadata, absl::string_view name,
                                   int32_t absent) {
  if (!metadata.Has(Key(name))) return absent;
  LLM_ASSIGN_OR_RETURN(const int64_t id, metadata.GetInt(Key(name)));
  // Writers spell "none" as -1 or, in the unsigned field, as its 32 bits.
  if (id == -1 || id == std::numeric_limits<uint32_t>::max()) return -1;
  if (id < 0 || id > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(Key(name), " is ", id, ", not a token id"));
  }
  return static_cast<int32_t>(id);
}

absl::StatusOr<bool> OptionalBool(const Metadata& metadata, absl::string_view name, bool absent) {
  if (!metadata.Has(Key(name))) return absent;
  return metadata.GetBool(Key(name));
}

absl::Status ReadTypes(const Metadata& metadata, TokenizerSpec* spec) {
  if (!metadata.Has(Key("token_type"))) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const std::vector<uint8_t> types, metadata.GetSmallInts(Key("token_type")));
  spec->types.resize(types.size());
  std::transform(types.begin(), types.end(), spec->types.begin(),
                 [](uint8_t type) { return static_cast<TokenType>(type); });
  return absl::OkStatus();
}

absl::Status ReadModel(const Metadata& metadata, TokenizerSpec* spec, TokenizerTexts* texts) {
  LLM_ASSIGN_OR_RETURN(const absl::string_view model, metadata.GetString(Key("model")));
  if (model == "llama") {
    spec->model = TokenizerModel::kSpm;
    LLM_ASSIGN_OR_RETURN(spec->scores, metadata.GetFloats(Key("scores")));
    return absl::OkStatus();
  }
  if (model == kCharBpeModel) {
    spec->model = TokenizerModel::kCharBpe;
    LLM_ASSIGN_OR_RETURN(texts->merges, metadata.GetStrings(Key("merges")));
    return ReadOwnTokenizerKeys(metadata, spec);
  }
  if (model != "gpt2") {
    return absl::UnimplementedError(absl::StrCat("tokenizer.ggml.model \"", model.substr(0, 100),
                                                 "\" is not supported, only gpt2 and llama"));
  }
  spec->model = TokenizerModel::kBpe;
  if (metadata.Has(Key("pre"))) {
    LLM_ASSIGN_OR_RETURN(const absl::string_view pre, metadata.GetString(Key("pre")));
    spec->pre_tokenizer = std::string(pre);
  }
  LLM_ASSIGN_OR_RETURN(texts->merges, metadata.GetStrings(Key("merges")));
  return ReadOwnTokenizerKeys(metadata, spec);
}

}  // namespace

absl::StatusOr<TokenizerSpec> TokenizerSpecFromGguf(const Metadata& metadata,
                                                    TokenizerTexts* texts) {
  TokenizerSpec spec;
  LLM_RETURN_IF_ERROR(ReadModel(metadata, &spec, texts));
  LLM_ASSIGN_OR_RETURN(texts->tokens, metadata.GetStrings(Key("tokens")));
  LLM_RETURN_IF_ERROR(ReadTypes(metadata, &spec));
  const bool is_spm = spec.model == TokenizerModel::kSpm;
  const bool is_llama3 = !is_spm && spec.pre_tokenizer == "llama-bpe";
  LLM_ASSIGN_OR_RETURN(spec.bos_id, OptionalId(metadata, "bos_token_id", is_spm ? 1 : -1));
  LLM_ASSIGN_OR_RETURN(spec.eos_id, OptionalId(metadata, "eos_token_id", is_spm ? 2 : -1));
  LLM_ASSIGN_OR_RETURN(spec.unknown_id, OptionalId(metadata, "unknown_token_id", is_spm ? 0 : -1));
  const bool bos_by_default = (is_spm || is_llama3) && spec.bos_id >= 0;
  LLM_ASSIGN_OR_RETURN(spec.add_bos, OptionalBool(metadata, "add_bos_token", bos_by_default));
  LLM_ASSIGN_OR_RETURN(spec.add_eos, OptionalBool(metadata, "add_eos_token", false));
  LLM_ASSIGN_OR_RETURN(spec.add_space_prefix, OptionalBool(metadata, "add_space_prefix", is_spm));
  LLM_ASSIGN_OR_RETURN(spec.remove_extra_whitespaces,
                       OptionalBool(metadata, "remove_extra_whitespaces", false));
  return spec;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerFromGguf(const Metadata& metadata) {
  TokenizerTexts texts;
  LLM_ASSIGN_OR_RETURN(TokenizerSpec spec, TokenizerSpecFromGguf(metadata, &texts));
  return Tokenizer::Create(std::move(spec), texts);
}

}  // namespace llm
