// Checks that need no vocabulary; those that do (merges, duplicates) are where the vocabulary is
// built.
#include "src/tokenizer/tokenizer_spec_check.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status CheckSizes(const TokenizerSpec& spec, const TokenizerTexts& texts) {
  const size_t num_tokens = texts.tokens.size();
  if (num_tokens == 0) return absl::InvalidArgumentError("tokenizer: the vocabulary is empty");
  if (num_tokens > kMaxTokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer: ", num_tokens, " tokens, at most ", kMaxTokens, " are allowed"));
  }
  if (texts.merges.size() > kMaxMerges) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer: ", texts.merges.size(), " merges, at most ", kMaxMerges, " are allowed"));
  }
  if (!spec.types.empty() && spec.types.size() != num_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer: ", spec.types.size(), " token types for ", num_tokens, " tokens"));
  }
  const bool needs_scores = spec.model == TokenizerModel::kSpm;
  if ((needs_scores || !spec.scores.empty()) && spec.scores.size() != num_tokens) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer: ", spec.scores.size(), " scores for ", num_tokens, " tokens"));
  }
  if (!spec.strips.empty() && spec.strips.size() != num_tokens) {
    return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", spec.strips.size(),
                                                   " strip flags for ", num_tokens, " tokens"));
  }
  return absl::OkStatus();
}

absl::Status CheckTokens(const TokenizerSpec& spec, const TextList& tokens) {
  size_t id = 0;
  for (const absl::string_view text : tokens) {
    if (text.size() > kMaxTokenBytes) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", DescribeToken(id, text),
                                                     " has ", text.size(), " bytes, at most ",
                                                     kMaxTokenBytes, " are allowed"));
    }
    if (!spec.types.empty()) {
      const int type = static_cast<int>(spec.types[id]);
      if (type < 1 || type > 6) {
        return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", DescribeToken(id, text),
                                                       " has type ", type, ", not one of 1 to 6"));
      }
    }
    if (!spec.scores.empty() && std::isnan(spec.scores[id])) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: the score of ", DescribeToken(id, text), " is not a number"));
    }
    ++id;
  }
  return absl::OkStatus();
}

absl::Status CheckId(size_t num_tokens, absl::string_view name, int32_t id, bool needed) {
  if (id >= -1 && id < static_cast<int64_t>(num_tokens) && !(needed && id == -1)) {
    return absl::OkStatus();
  }
  if (id == -1) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer: ", name, " is to be added to texts, but the model names none"));
  }
  return absl::InvalidArgumentError(absl::StrCat("tokenizer: ", name, " is ", id,
                                                 ", the vocabulary has ", num_tokens, " tokens"));
}

}  // namespace

std::string DescribeToken(size_t id, absl::string_view text) {
  constexpr size_t kShown = 40;
  return absl::StrCat("token ", id, " (\"", absl::CEscape(text.substr(0, kShown)),
                      text.size() > kShown ? "..." : "", "\")");
}

absl::Status CheckTokenizerSpec(const TokenizerSpec& spec, const TokenizerTexts& texts) {
  LLM_RETURN_IF_ERROR(CheckSizes(spec, texts));
  LLM_RETURN_IF_ERROR(CheckTokens(spec, texts.tokens));
  const size_t num_tokens = texts.tokens.size();
  LLM_RETURN_IF_ERROR(CheckId(num_tokens, "bos_id", spec.bos_id, spec.add_bos));
  LLM_RETURN_IF_ERROR(CheckId(num_tokens, "eos_id", spec.eos_id, spec.add_eos));
  return CheckId(num_tokens, "unknown_id", spec.unknown_id, false);
}

}  // namespace llm
