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

  absl::StatusOr<Scratch> NewScratch() const;
  // Replaces `pieces` by the pieces of `text`: in order, none empty, together all of it.
  // RESOURCE_EXHAUSTED when a match takes more steps than the text's length explains. REQUIRES:
  // valid UTF-8.
  absl::Status Split(absl::string_view text, Scratch* scratch,
                     std::vector<absl::string_view>* pieces) const;

  bool normalizes_to_nfc() const { return rule_.normalize_to_nfc; }
  bool prefers_whole_pieces() const { return rule_.prefer_whole_pieces; }

 private:
  PreTokenizer() = default;
  absl::Status Compile(absl::string_view pattern);
  absl::Status SplitPiece(const pcre2_code* code, absl::string_view piece, Scratch* scratch) const;

  PreTokenizerRule rule_;
  std::vector<std::unique_ptr<pcre2_code, PcreDeleter>> stages_;
  std::unique_ptr<pcre2_match_context, PcreDeleter> context_;
};

}  // namespace llm
