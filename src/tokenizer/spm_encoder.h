// SentencePiece BPE: characters joined pair by pair, the piece of the best score first.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/added_token_matcher.h"
#include "src/tokenizer/text_encoder.h"
#include "src/tokenizer/tokenizer_spec.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {

class SpmEncoder final : public TextEncoder {
 public:
  // Takes spec->scores. INVALID_ARGUMENT for a vocabulary that has neither all byte tokens nor an
  // unknown token.
  static absl::StatusOr<std::unique_ptr<TextEncoder>> Create(TokenizerSpec* spec,
                                                             const Vocabulary* vocabulary,
                                                             const AddedTokenMatcher* user_defined);

  absl::Status Encode(absl::string_view text, bool at_start,
                      std::vector<int32_t>* ids) const override;
  size_t size_bytes() const override {
    return sizeof(*this) + scores_.capacity() * sizeof(float) +
           unused_ids_.capacity() * sizeof(int32_t);
  }

 private:
  // A run of the text that is one piece, or one character that is no piece yet (id -1).
  struct Symbol {
    uint32_t begin;
    uint32_t length;  // 0 once joined to the one before it
    int32_t id;
    int32_t prev;
    int32_t next;
    bool frozen;  // user-defined: joins nothing
  };
  struct Candidate {
    float score;
    int32_t left;
    uint32_t length;  // of both symbols together; another length now means the candidate is stale
  };
  struct Scratch {
    absl::string_view text;  // one segment, spaces resolved
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
    // For an unused piece that merging went through: the length of its left half.
    std::unordered_map<int32_t, uint32_t> unused_left_length;
  };

  SpmEncoder(TokenizerSpec* spec, const Vocabulary* vocabulary,
             const AddedTokenMatcher* user_defined);

  std::string Normalize(absl::string_view text) const;
  // The length of the first part of `text` across whose end no piece can reach.
  size_t SegmentLength(absl::string_view text) const;
  void FillSymbols(Scratch* scratch) const;
  void MergeSymbols(Scratch* scratch) const;
  void PushCandidate(int32_t left, Scratch* scratch) const;
  void AppendIds(const Scratch& scratch, std::vector<int32_t>* ids) const;
  void AppendUnused(absl::string_view piece, const Scratch& scratch,
                    std::vector<int32_t>* ids) const;
  void AppendCharacter(absl::string_view character, std::vector<int32_t>* ids) const;
  bool IsUnused(int32_t id) const;

  const Vocabulary* vocabulary_;
  const AddedTokenMatcher* user_defined_;
  std::vector<float> scores_;
  std::vector<int32_t> unused_ids_;  // sorted
  int32_t unknown_id_;
  bool add_space_prefix_;
  bool remove_extra_whitespaces_;
};

}  // namespace llm
