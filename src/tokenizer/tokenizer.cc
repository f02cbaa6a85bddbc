// Puts the parts together: control tokens here, everything else in the model's text encoder.
#include "src/tokenizer/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/status_macros.h"
#include "src/tokenizer/added_token_matcher.h"
#include "src/tokenizer/bpe_encoder.h"
#include "src/tokenizer/char_bpe_encoder.h"
#include "src/tokenizer/spm_encoder.h"
#include "src/tokenizer/text_encoder.h"
#include "src/tokenizer/tokenizer_spec_check.h"
#include "src/tokenizer/utf8.h"
#include "src/tokenizer/vocabulary.h"

namespace llm {
namespace {

// Not part of a text: rendered only on request, and written out only with parse_special.
bool IsSpecial(TokenType type) {
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

// User-defined, control and unknown tokens, sorted by text.
std::vector<int32_t> AddedIds(const TokenizerSpec& spec, const Vocabulary& vocabulary) {
  std::vector<int32_t> ids;
  for (size_t id = 0; id < spec.types.size(); ++id) {
    const TokenType type = spec.types[id];
    if (type == TokenType::kUserDefined || IsSpecial(type)) ids.push_back(static_cast<int32_t>(id));
  }
  return SortedByText(vocabulary, ids);
}

std::vector<int32_t> UserDefinedAmong(const std::vector<int32_t>& ids, const TokenizerSpec& spec) {
  std::vector<int32_t> user_defined;
  std::copy_if(ids.begin(), ids.end(), std::back_inserter(user_defined), [&](int32_t id) {
    return TypeOf(spec, static_cast<size_t>(id)) == TokenType::kUserDefined;
  });
  return user_defined;
}

class VocabularyTokenizer final : public Tokenizer {
 public:
  VocabularyTokenizer(TokenizerSpec spec, Vocabulary vocabulary, std::vector<int32_t> added)
      : Tokenizer(std::move(spec)),
        vocabulary_(std::move(vocabulary)),
        user_defined_(&vocabulary_, UserDefinedAmong(added, spec_)),
        added_(&vocabulary_, std::move(added)) {
    vocab_size_ = vocabulary_.size();
  }

  absl::Status Init(const TextList& merges) {
    LLM_ASSIGN_OR_RETURN(encoder_, MakeEncoder(merges));
    spec_.scores = std::vector<float>();
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<int32_t>> Encode(absl::string_view text,
                                              const EncodeOptions& options) const override {
    if (text.size() > kMaxTextBytes) {
      return absl::ResourceExhaustedError(absl::StrCat("tokenizer: a text of ", text.size(),
                                                       " bytes, at most ", kMaxTextBytes,
                                                       " can be encoded at once"));
    }
    std::string repaired;
    if (ValidUtf8Prefix(text) != text.size()) {
      if (!options.literal.empty()) {
        return absl::InvalidArgumentError("tokenizer: a text with literal parts is not UTF-8");
      }
      repaired = ReplaceInvalidUtf8(text);
      text = repaired;
    }
    std::vector<int32_t> ids;
    if (options.add_special && spec_.add_bos) ids.push_back(spec_.bos_id);
    LLM_RETURN_IF_ERROR(options.parse_special ? EncodeWithSpecial(text, options.literal, &ids)
                                              : encoder_->Encode(text, true, &ids));
    if (options.add_special && spec_.add_eos) ids.push_back(spec_.eos_id);
    return ids;
  }

  absl::string_view TokenBytes(int32_t id, bool render_special) const override {
    LLM_DCHECK(id >= 0 && id < vocab_size());
    if (!render_special && IsSpecial(TypeOf(spec_, static_cast<size_t>(id)))) return "";
    return vocabulary_.Bytes(id);
  }

  int32_t FindToken(absl::string_view text) const override {
    const int32_t id = added_.Find(text);
    return id >= 0 ? id : vocabulary_.FindPiece(text);
  }

  uint64_t size_bytes() const override {
    return sizeof(*this) + vocabulary_.size_bytes() + user_defined_.size_bytes() +
           added_.size_bytes() + encoder_->size_bytes() + spec_.types.capacity();
  }

 private:
  absl::StatusOr<std::unique_ptr<TextEncoder>> MakeEncoder(const TextList& merges) {
    switch (spec_.model) {
      case TokenizerModel::kBpe:
        return BpeEncoder::Create(spec_, merges, &vocabulary_, &user_defined_);
      case TokenizerModel::kSpm:
        return SpmEncoder::Create(&spec_, &vocabulary_, &user_defined_);
      case TokenizerModel::kCharBpe:
        return CharBpeEncoder::Create(spec_, merges, &vocabulary_, &user_defined_);
    }
    return absl::InvalidArgumentError("tokenizer: unknown model");
  }

  // Cuts at control tokens; user-defined ones are stepped over as a whole, the encoder finds them
  // again.
  absl::Status EncodeWithSpecial(absl::string_view text, absl::Span<const TextSpan> literal,
                                 std::vector<int32_t>* ids) const {
    size_t begin = 0;
    for (size_t at = 0; at < text.size() && !added_.empty();) {
      while (!literal.empty() && literal.front().end <= at) literal.remove_prefix(1);
      const size_t own_end = literal.empty() ? text.size() : literal.front().begin;
      const int32_t id = own_end <= at ? user_defined_.MatchPrefix(text.substr(at))
                                       : added_.MatchPrefix(text.substr(at, own_end - at));
      if (id >= 0 && IsSpecial(TypeOf(spec_, static_cast<size_t>(id)))) {
        const absl::string_view before = StripBefore(id, text.substr(begin, at - begin));
        if (!before.empty()) LLM_RETURN_IF_ERROR(encoder_->Encode(before, begin == 0, ids));
        ids->push_back(id);
        at += vocabulary_.Bytes(id).size();
        at += StrippedBehind(id, text.substr(at));
        begin = at;
        continue;
      }
      at += id >= 0 ? vocabulary_.Bytes(id).size() : 1;
    }
    if (begin == text.size()) return absl::OkStatus();
    return encoder_->Encode(text.substr(begin), begin == 0, ids);
  }

  bool Strips(int32_t id, uint8_t side) const {
    return !spec_.strips.empty() && (spec_.strips[static_cast<size_t>(id)] & side) != 0;
  }
  // The text before a control token, without white space that belongs to the token.
  absl::string_view StripBefore(int32_t id, absl::string_view text) const {
    return Strips(id, kStripsLeft) ? text.substr(0, text.size() - WhiteSpaceSuffix(text)) : text;
  }
  // How much of the text behind it belongs to a control token.
  size_t StrippedBehind(int32_t id, absl::string_view text) const {
    return Strips(id, kStripsRight) ? WhiteSpacePrefix(text) : 0;
  }

  Vocabulary vocabulary_;
  AddedTokenMatcher user_defined_;
  AddedTokenMatcher added_;  // user-defined, control and unknown
  std::unique_ptr<TextEncoder> encoder_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(TokenizerSpec spec) {
  const std::string tokens = JoinForTextList(spec.tokens);
  const std::string merges = JoinForTextList(spec.merges);
  const TokenizerTexts texts = {.tokens = TextList(tokens, spec.tokens.size()),
                                .merges = TextList(merges, spec.merges.size())};
  spec.tokens = std::vector<std::string>();  // `= {}` would keep the memory
  spec.merges = std::vector<std::string>();
  return Create(std::move(spec), texts);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Tokenizer::Create(TokenizerSpec spec,
                                                             const TokenizerTexts& texts) {
  LLM_RETURN_IF_ERROR(CheckTokenizerSpec(spec, texts));
  LLM_ASSIGN_OR_RETURN(Vocabulary vocabulary, Vocabulary::Create(spec, texts.tokens));
  std::vector<int32_t> added = AddedIds(spec, vocabulary);
  auto tokenizer = std::make_unique<VocabularyTokenizer>(std::move(spec), std::move(vocabulary),
                                                         std::move(added));
  LLM_RETURN_IF_ERROR(tokenizer->Init(texts.merges));
  return tokenizer;
}

bool Tokenizer::IsControl(int32_t id) const {
  return id >= 0 && static_cast<size_t>(id) < spec_.types.size() &&
         spec_.types[static_cast<size_t>(id)] == TokenType::kControl;
}

absl::StatusOr<std::string> Tokenizer::Decode(absl::Span<const int32_t> ids,
                                              bool render_special) const {
  std::string text;
  bool at_start =
      (spec_.model == TokenizerModel::kSpm && spec_.add_space_prefix) ||
      (spec_.model == TokenizerModel::kCharBpe && spec_.space_prefix != SpacePrefix::kNever);
  for (int32_t id : ids) {
    if (id < 0 || id >= vocab_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer: token id ", id, " is not in the vocabulary of ", vocab_size()));
    }
    absl::string_view bytes = TokenBytes(id, render_special);
    // The prefix belongs to the first token that is text, behind bos and the like.
    if (at_start && !IsControl(id) && !bytes.empty()) {
      if (bytes[0] == ' ') bytes.remove_prefix(1);
      at_start = false;
    }
    text.append(bytes.data(), bytes.size());
  }
  return text;
}

}  // namespace llm
