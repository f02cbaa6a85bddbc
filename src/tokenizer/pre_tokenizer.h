// Cuts text into the pieces that byte-level BPE merges within.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/pre_tokenizer_patterns.h"
#include "src/tokenizer/tokenizer_spec.h"

namespace llm {

class PreTokenizer {
 public:
  struct PcreDeleter {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  // What one thread needs while it splits; reused from call to call.
  struct Scratch {
    std::unique_ptr<pcre2_match_data, PcreDeleter> match_data;
    std::vector<absl::string_view> next_pieces;
  };

  // UNIMPLEMENTED, with the name, for a rule that is not known: never a silent wrong split.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(absl::string_view name);
  // INVALID_ARGUMENT for a pattern that does not compile.
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(const SplitRule& rule);
  static absl::StatusOr<std::unique_ptr<PreTokenizer>> Create(const TokenizerSpec& spec) {
    return spec.spells_rule ? Create(spec.split_rule) : Create(spec.pre_tokenizer);
  }

  absl::StatusOr<Scratch> NewScratch() const;
  // Replaces `pieces` by the pieces of `text`: in order, none empty, together all of it.
  // RESOURCE_EXHAUSTED when a match takes more steps than the text's length explains. REQUIRES:
  // valid UTF-8.
  absl::Status Split(absl::string_view text, Scratch* scratch,
                     std::vector<absl::string_view>* pieces) const;

  bool normalizes_to_nfc() const { return normalize_to_nfc_; }
  bool prefers_whole_pieces() const { return prefer_whole_pieces_; }

 private:
  PreTokenizer() = default;
  absl::Status SetLimits(uint32_t match_limit);
  absl::Status Compile(absl::string_view pattern);
  absl::Status SplitPiece(const pcre2_code* code, absl::string_view piece, Scratch* scratch) const;

  bool normalize_to_nfc_ = false;
  bool prefer_whole_pieces_ = false;
  std::vector<std::unique_ptr<pcre2_code, PcreDeleter>> stages_;
  std::unique_ptr<pcre2_match_context, PcreDeleter> context_;
};

}  // namespace llm
