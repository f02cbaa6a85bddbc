// Vocabulary, merges and added tokens; what happens to a text before and after is in
// hub_tokenizer_rules.cc.
#include "src/engine/tokenizer_from_hub.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/base/status_macros.h"
#include "src/engine/hub_tokenizer_rules.h"
#include "src/loader/gguf_types.h"
#include "src/tokenizer/tokenizer_spec_check.h"

namespace llm {
namespace {

absl::Status Unsupported(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not supported"));
}

bool IsEmpty(JsonValue v) {
  const absl::StatusOr<absl::string_view> text = v.GetString();
  return !v.exists() || v.is_null() || (text.ok() && text->empty());
}

absl::StatusOr<bool> FlagOr(JsonValue object, absl::string_view key, bool fallback) {
  const JsonValue value = object.Find(key);
  if (!value.exists() || value.is_null()) return fallback;
  const absl::StatusOr<bool> flag = value.GetBool();
  if (!flag.ok()) return At(key, flag.status());
  return *flag;
}

absl::StatusOr<int32_t> TokenId(JsonValue value) {
  LLM_ASSIGN_OR_RETURN(const int64_t id, value.GetInt());
  if (id >= 0 && id < static_cast<int64_t>(kMaxTokens)) return static_cast<int32_t>(id);
  return absl::InvalidArgumentError(absl::StrCat("id ", id, " is not in 0 to ", kMaxTokens - 1));
}

class SpecReader {
 public:
  explicit SpecReader(TokenizerSpec* spec) : spec_(*spec) {}

  absl::Status ReadModel(JsonValue model);
  absl::Status ReadAdded(JsonValue added);
  // REQUIRES: the rules are read.
  absl::Status SetTypes();
  absl::StatusOr<int32_t> FindId(absl::string_view key, absl::string_view text) const;

 private:
  enum class Added : uint8_t { kNo, kPlain, kSpecial };

  absl::Status CheckModelMembers(JsonValue model);
  absl::Status ReadVocabulary(JsonValue vocabulary);
  absl::Status ReadMerges(JsonValue merges);
  absl::Status ReadToken(JsonValue token);
  absl::Status SetToken(int32_t id, absl::string_view text);

  TokenizerSpec& spec_;
  size_t max_tokens_ = 0;         // the file's own, and some holes between them
  std::vector<bool> known_;       // [tokens]: the id has a text
  std::vector<Added> added_;      // [tokens]
  std::vector<bool> normalized_;  // [tokens]: an added token that is found in the normalized text
  std::string unknown_;
  bool byte_fallback_ = false;
};

absl::Status SpecReader::CheckModelMembers(JsonValue model) {
  for (JsonValue v = model.first(); v.exists(); v = v.next()) {
    const absl::string_view key = v.key();
    if (key == "type" || key == "vocab" || key == "merges" || key == "unk_token" ||
        key == "byte_fallback" || key == "ignore_merges" || key == "fuse_unk") {
      continue;
    }
    const absl::StatusOr<double> number = v.GetFloat();
    const bool empty = IsEmpty(v) || (number.ok() && *number == 0);
    if (key == "dropout" && empty) continue;
    if ((key == "continuing_subword_prefix" || key == "end_of_word_suffix") && empty) continue;
    return Unsupported(Printable(key));
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadModel(JsonValue model) {
  LLM_RETURN_IF_ERROR(model.CheckType(JsonType::kObject));
  const absl::StatusOr<absl::string_view> type = model.Find("type").GetString();
  // The oldest files leave it out; merges tell BPE from the others.
  if (type.ok() && *type != "BPE") return Unsupported(absl::StrCat("type ", Printable(*type)));
  LLM_RETURN_IF_ERROR(CheckModelMembers(model));
  LLM_ASSIGN_OR_RETURN(byte_fallback_, FlagOr(model, "byte_fallback", false));
  LLM_ASSIGN_OR_RETURN(spec_.split_rule.prefer_whole_pieces, FlagOr(model, "ignore_merges", false));
  LLM_ASSIGN_OR_RETURN(spec_.fuse_unknown, FlagOr(model, "fuse_unk", false));
  if (!IsEmpty(model.Find("unk_token"))) {
    const absl::StatusOr<absl::string_view> unknown = model.Find("unk_token").GetString();
    if (!unknown.ok()) return At("unk_token", unknown.status());
    unknown_ = std::string(*unknown);
  }
  if (absl::Status read = ReadVocabulary(model.Find("vocab")); !read.ok()) return At("vocab", read);
  if (absl::Status read = ReadMerges(model.Find("merges")); !read.ok()) return At("merges", read);
  return absl::OkStatus();
}

absl::Status SpecReader::ReadVocabulary(JsonValue vocabulary) {
  constexpr size_t kMostHoles = 65536;
  LLM_RETURN_IF_ERROR(vocabulary.CheckType(JsonType::kObject));
  max_tokens_ = vocabulary.num_items() + kMostHoles;
  for (JsonValue v = vocabulary.first(); v.exists(); v = v.next()) {
    const absl::StatusOr<int32_t> id = TokenId(v);
    absl::Status set = id.ok() ? SetToken(*id, v.key()) : id.status();
    if (!set.ok()) return At(absl::StrCat("token ", Printable(v.key())), set);
  }
  return absl::OkStatus();
}

absl::Status SpecReader::SetToken(int32_t id, absl::string_view text) {
  const auto index = static_cast<size_t>(id);
  if (index >= max_tokens_) {
    return absl::InvalidArgumentError(absl::StrCat("id ", id, " is far above the others"));
  }
  if (index >= spec_.tokens.size()) {
    spec_.tokens.resize(index + 1);
    known_.resize(index + 1);
    added_.resize(index + 1);
    normalized_.resize(index + 1);
  }
  if (known_[index] && spec_.tokens[index] != text) {
    return absl::InvalidArgumentError(
        absl::StrCat("id ", id, " is that of ", DescribeToken(index, spec_.tokens[index])));
  }
  known_[index] = true;
  spec_.tokens[index] = std::string(text);
  return absl::OkStatus();
}

// "left right", or a pair.
absl::Status SpecReader::ReadMerges(JsonValue merges) {
  LLM_RETURN_IF_ERROR(merges.CheckType(JsonType::kArray));
  for (JsonValue v = merges.first(); v.exists(); v = v.next()) {
    if (v.Is(JsonType::kString)) {
      spec_.merges.emplace_back(*v.GetString());
      continue;
    }
    const absl::StatusOr<absl::string_view> left = v.first().GetString();
    const absl::StatusOr<absl::string_view> right =
        v.num_items() == 2 ? v.first().next().GetString() : left;
    if (v.num_items() != 2 || !left.ok() || !right.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("element ", spec_.merges.size(), ": expected two texts"));
    }
    spec_.merges.push_back(absl::StrCat(*left, " ", *right));
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadAdded(JsonValue added) {
  if (!added.exists() || added.is_null()) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(added.CheckType(JsonType::kArray));
  size_t index = 0;
  for (JsonValue v = added.first(); v.exists(); v = v.next(), ++index) {
    if (absl::Status read = ReadToken(v); !read.ok()) {
      const absl::StatusOr<absl::string_view> text = v.Find("content").GetString();
      return At(text.ok() ? Printable(*text) : absl::StrCat("element ", index), read);
    }
  }
  return absl::OkStatus();
}

absl::Status SpecReader::ReadToken(JsonValue token) {
  LLM_RETURN_IF_ERROR(token.CheckType(JsonType::kObject));
  for (JsonValue v = token.first(); v.exists(); v = v.next()) {
    const absl::string_view key = v.key();
    const bool known = key == "id" || key == "content" || key == "special" || key == "lstrip" ||
                       key == "rstrip" || key == "normalized" || key == "single_word";
    if (!known) return Unsupported(Printable(key));
  }
  const absl::StatusOr<int32_t> id = TokenId(token.Find("id"));
  if (!id.ok()) return At("id", id.status());
  const absl::StatusOr<absl::string_view> text = token.Find("content").GetString();
  if (!text.ok()) return At("content", text.status());
  LLM_RETURN_IF_ERROR(SetToken(*id, *text));
  LLM_ASSIGN_OR_RETURN(const bool special, FlagOr(token, "special", false));
  LLM_ASSIGN_OR_RETURN(const bool left, FlagOr(token, "lstrip", false));
  LLM_ASSIGN_OR_RETURN(const bool right, FlagOr(token, "rstrip", false));
  LLM_ASSIGN_OR_RETURN(const bool single_word, FlagOr(token, "single_word", false));
  LLM_ASSIGN_OR_RETURN(const bool normalized, FlagOr(token, "normalized", !special));
  if (single_word) return Unsupported("single_word");
  if ((left || right) && !special) return Unsupported("lstrip or rstrip of a token that is text");
  const auto index = static_cast<size_t>(*id);
  added_[index] = special ? Added::kSpecial : Added::kPlain;
  normalized_[index] = normalized;
  if (left || right) {
    spec_.strips.resize(spec_.tokens.size());
    spec_.strips[index] =
        static_cast<uint8_t>((left ? kStripsLeft : 0) | (right ? kStripsRight : 0));
  }
  return absl::OkStatus();
}

// "<0x0A>"
bool IsByteToken(absl::string_view text) {
  return text.size() == 6 && absl::StartsWith(text, "<0x") && text[5] == '>';
}

absl::Status SpecReader::SetTypes() {
  const bool chars = spec_.model == TokenizerModel::kCharBpe;
  if (byte_fallback_ && !chars) return Unsupported("model: byte_fallback beside ByteLevel");
  const bool normalizes = chars || spec_.split_rule.normalize_to_nfc;
  spec_.types.resize(spec_.tokens.size(), TokenType::kNormal);
  if (!spec_.strips.empty()) spec_.strips.resize(spec_.tokens.size());
  for (size_t id = 0; id < spec_.tokens.size(); ++id) {
    const std::string& text = spec_.tokens[id];
    const auto changes = [](char c) { return c == ' ' || (c & 0x80) != 0; };
    const bool prefixed = spec_.space_prefix == SpacePrefix::kAlways;  // before it as well
    if (normalized_[id] && normalizes &&
        (prefixed || std::any_of(text.begin(), text.end(), changes))) {
      return Unsupported(absl::StrCat("added_tokens: ", Printable(text), ": normalized"));
    }
    TokenType& type = spec_.types[id];
    if (!known_[id]) {
      type = TokenType::kUnused;  // a hole; its text is empty
    } else if (added_[id] != Added::kNo) {
      type = added_[id] == Added::kSpecial ? TokenType::kControl : TokenType::kUserDefined;
    } else if (byte_fallback_ && IsByteToken(text)) {
      type = TokenType::kByte;
    }
    if (text == unknown_ && !unknown_.empty()) spec_.unknown_id = static_cast<int32_t>(id);
  }
  if (unknown_.empty() || spec_.unknown_id >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model: unk_token: ", Printable(unknown_), " is no token"));
}

absl::StatusOr<int32_t> SpecReader::FindId(absl::string_view key, absl::string_view text) const {
  for (size_t id = 0; id < spec_.tokens.size(); ++id) {
    if (known_[id] && spec_.tokens[id] == text) return static_cast<int32_t>(id);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer_config.json: key ", key, ": ", Printable(text), " is no token"));
}

// Of the families whose tokenizers rebuild their frame from these flags, whatever tokenizer.json
// says.
absl::Status ApplyFlags(JsonValue config, TokenizerSpec* spec) {
  const absl::StatusOr<absl::string_view> name = config.Find("tokenizer_class").GetString();
  if (!name.ok()) return absl::OkStatus();
  const absl::string_view family = absl::StripSuffix(*name, "Fast");
  if (family != "LlamaTokenizer" && family != "GemmaTokenizer" && family != "CodeLlamaTokenizer") {
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(spec->add_bos, FlagOr(config, "add_bos_token", spec->add_bos));
  LLM_ASSIGN_OR_RETURN(spec->add_eos, FlagOr(config, "add_eos_token", spec->add_eos));
  return absl::OkStatus();
}

absl::Status ReadConfig(const JsonDocument& config, const SpecReader& reader, TokenizerSpec* spec) {
  LLM_ASSIGN_OR_RETURN(const std::string bos, HubTokenText(config, "bos_token"));
  LLM_ASSIGN_OR_RETURN(const std::string eos, HubTokenText(config, "eos_token"));
  // A template's own token is the one that frames a text; usually both are the same.
  if (!bos.empty() && !spec->add_bos) {
    LLM_ASSIGN_OR_RETURN(spec->bos_id, reader.FindId("bos_token", bos));
  }
  if (!eos.empty() && !spec->add_eos) {
    LLM_ASSIGN_OR_RETURN(spec->eos_id, reader.FindId("eos_token", eos));
  }
  if (absl::Status flags = ApplyFlags(config.root(), spec); !flags.ok()) {
    return At("tokenizer_config.json", flags);
  }
  return absl::OkStatus();
}

absl::Status ReadTokenizer(JsonValue root, SpecReader* reader, TokenizerSpec* spec) {
  LLM_RETURN_IF_ERROR(root.CheckType(JsonType::kObject));
  for (JsonValue v = root.first(); v.exists(); v = v.next()) {
    const absl::string_view key = v.key();
    const bool known = key == "version" || key == "truncation" || key == "padding" ||
                       key == "added_tokens" || key == "normalizer" || key == "pre_tokenizer" ||
                       key == "post_processor" || key == "decoder" || key == "model";
    if (!known) return Unsupported(absl::StrCat("key ", Printable(key)));
  }
  if (absl::Status read = reader->ReadModel(root.Find("model")); !read.ok()) {
    return At("model", read);
  }
  if (absl::Status read = reader->ReadAdded(root.Find("added_tokens")); !read.ok()) {
    return At("added_tokens", read);
  }
  LLM_RETURN_IF_ERROR(ReadHubTextRules(root, spec));
  LLM_RETURN_IF_ERROR(ReadHubFrame(root, spec));
  return reader->SetTypes();
}

}  // namespace

absl::StatusOr<std::string> HubTokenText(const JsonDocument& config, absl::string_view key) {
  JsonValue value = config.root().Find(key);
  if (!value.exists() || value.is_null()) return std::string();
  if (value.Is(JsonType::kObject)) value = value.Find("content");
  const absl::StatusOr<absl::string_view> text = value.GetString();
  if (!text.ok()) return At(absl::StrCat("tokenizer_config.json: key ", key), text.status());
  return std::string(*text);
}

absl::StatusOr<TokenizerSpec> TokenizerSpecFromHub(const JsonDocument& tokenizer,
                                                   const JsonDocument& config) {
  TokenizerSpec spec;
  spec.spells_rule = true;
  SpecReader reader(&spec);
  if (absl::Status read = ReadTokenizer(tokenizer.root(), &reader, &spec); !read.ok()) {
    return At("tokenizer.json", read);
  }
  LLM_RETURN_IF_ERROR(ReadConfig(config, reader, &spec));
  return spec;
}

}  // namespace llm
