// GGUF names a splitting rule where tokenizer.json spells it out, and knows neither white space
// that belongs to a token nor BPE over characters by merges.
#include "src/engine/tokenizer_to_gguf.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr absl::string_view kNfcKey = "tokenizer.normalize_to_nfc";
constexpr absl::string_view kWholePiecesKey = "tokenizer.prefer_whole_pieces";
constexpr absl::string_view kSpacePrefixKey = "tokenizer.space_prefix";
constexpr absl::string_view kFuseUnknownKey = "tokenizer.fuse_unknown";
constexpr absl::string_view kStripsKey = "tokenizer.token_strips";

absl::StatusOr<bool> BoolOr(const Metadata& metadata, absl::string_view key) {
  return metadata.Has(key) ? metadata.GetBool(key) : false;
}

absl::StatusOr<int64_t> InRange(absl::string_view key, int64_t value, int64_t max) {
  if (value >= 0 && value <= max) return value;
  return absl::InvalidArgumentError(
      absl::StrCat("key ", key, ": ", value, " is not in 0 to ", max));
}

}  // namespace

void WriteTokenizer(const TokenizerSpec& spec, GgufWriter* writer) {
  const bool chars = spec.model == TokenizerModel::kCharBpe;
  writer->AddString("tokenizer.ggml.model", chars ? kCharBpeModel : "gpt2");
  writer->AddStrings("tokenizer.ggml.tokens", spec.tokens);
  std::vector<int32_t> type_ids;
  for (const TokenType type : spec.types) type_ids.push_back(static_cast<int32_t>(type));
  writer->AddInts("tokenizer.ggml.token_type", type_ids);
  writer->AddStrings("tokenizer.ggml.merges", spec.merges);
  writer->AddInt("tokenizer.ggml.bos_token_id", spec.bos_id);
  writer->AddInt("tokenizer.ggml.eos_token_id", spec.eos_id);
  writer->AddInt("tokenizer.ggml.unknown_token_id", spec.unknown_id);
  writer->AddBool("tokenizer.ggml.add_bos_token", spec.add_bos);
  writer->AddBool("tokenizer.ggml.add_eos_token", spec.add_eos);
  writer->AddStrings(kSplitPatternsKey, spec.split_rule.patterns);
  writer->AddBool(kNfcKey, spec.split_rule.normalize_to_nfc);
  writer->AddBool(kWholePiecesKey, spec.split_rule.prefer_whole_pieces);
  writer->AddInt(kSpacePrefixKey, static_cast<int64_t>(spec.space_prefix));
  writer->AddBool(kFuseUnknownKey, spec.fuse_unknown);
  if (spec.strips.empty()) return;
  writer->AddInts(kStripsKey, std::vector<int32_t>(spec.strips.begin(), spec.strips.end()));
}

absl::Status ReadOwnTokenizerKeys(const Metadata& metadata, TokenizerSpec* spec) {
  if (!metadata.Has(kSplitPatternsKey)) return absl::OkStatus();
  spec->spells_rule = true;
  LLM_ASSIGN_OR_RETURN(const auto patterns, metadata.GetStrings(kSplitPatternsKey));
  for (const absl::string_view pattern : patterns) {
    spec->split_rule.patterns.emplace_back(pattern);
  }
  LLM_ASSIGN_OR_RETURN(spec->split_rule.normalize_to_nfc, BoolOr(metadata, kNfcKey));
  LLM_ASSIGN_OR_RETURN(spec->split_rule.prefer_whole_pieces, BoolOr(metadata, kWholePiecesKey));
  LLM_ASSIGN_OR_RETURN(spec->fuse_unknown, BoolOr(metadata, kFuseUnknownKey));
  if (metadata.Has(kSpacePrefixKey)) {
    LLM_ASSIGN_OR_RETURN(const int64_t prefix, metadata.GetInt(kSpacePrefixKey));
    LLM_ASSIGN_OR_RETURN(const int64_t known, InRange(kSpacePrefixKey, prefix, 3));
    spec->space_prefix = static_cast<SpacePrefix>(known);
  }
  if (!metadata.Has(kStripsKey)) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const std::vector<int64_t> strips, metadata.GetInts(kStripsKey));
  for (const int64_t sides : strips) {
    LLM_ASSIGN_OR_RETURN(const int64_t known, InRange(kStripsKey, sides, 3));
    spec->strips.push_back(static_cast<uint8_t>(known));
  }
  return absl::OkStatus();
}

}  // namespace llm
