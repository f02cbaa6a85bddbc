// Each rule is followed or refused: a rule that is half understood would give ids that the model
// never saw.
#include "src/engine/hub_tokenizer_rules.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/tokenizer/pre_tokenizer_patterns.h"

namespace llm {
namespace {

constexpr absl::string_view kSpaceMark = "\xE2\x96\x81";  // U+2581

absl::Status Unsupported(absl::string_view what) {
  return absl::UnimplementedError(absl::StrCat(what, " is not supported"));
}

std::string TextOf(JsonValue value) {
  const absl::StatusOr<absl::string_view> text = value.GetString();
  return text.ok() ? std::string(*text) : "";
}

// What a rule's members must be: `known` takes a member or says that it does not.
absl::Status CheckMembers(JsonValue rule,
                          absl::FunctionRef<bool(absl::string_view, JsonValue)> known) {
  for (JsonValue v = rule.first(); v.exists(); v = v.next()) {
    if (v.key() == "type" || known(v.key(), v)) continue;
    const std::string value =
        v.Is(JsonType::kString) ? absl::StrCat(" ", Printable(TextOf(v))) : "";
    return Unsupported(absl::StrCat(TextOf(rule.Find("type")), ": ", Printable(v.key()), value));
  }
  return absl::OkStatus();
}

bool IsFalse(JsonValue v) {
  const absl::StatusOr<bool> flag = v.GetBool();
  return flag.ok() && !*flag;
}
bool IsTrue(JsonValue v) {
  const absl::StatusOr<bool> flag = v.GetBool();
  return flag.ok() && *flag;
}

// Calls `visit` for a rule, or for each inside a Sequence; null is none.
absl::Status ForEachRule(JsonValue rule, absl::string_view list_key,
                         absl::FunctionRef<absl::Status(JsonValue, absl::string_view type)> visit) {
  if (!rule.exists() || rule.is_null()) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(rule.CheckType(JsonType::kObject));
  const std::string type = TextOf(rule.Find("type"));
  if (type != "Sequence") return visit(rule, type);
  const JsonValue list = rule.Find(list_key);
  if (absl::Status array = list.CheckType(JsonType::kArray); !array.ok()) {
    return At(list_key, array);
  }
  for (JsonValue v = list.first(); v.exists(); v = v.next()) {
    LLM_RETURN_IF_ERROR(v.CheckType(JsonType::kObject));
    LLM_RETURN_IF_ERROR(visit(v, TextOf(v.Find("type"))));
  }
  return absl::OkStatus();
}

// {"String": "..."} with this text.
bool IsStringPattern(JsonValue pattern, absl::string_view text) {
  return pattern.num_items() == 1 && TextOf(pattern.Find("String")) == text;
}

class RuleReader {
 public:
  explicit RuleReader(TokenizerSpec* spec) : spec_(*spec) {}

  absl::Status Read(JsonValue tokenizer) {
    absl::Status status = ForEachRule(
        tokenizer.Find("normalizer"), "normalizers",
        [this](JsonValue rule, absl::string_view type) { return Normalizer(rule, type); });
    if (!status.ok()) return At("normalizer", status);
    status = ForEachRule(
        tokenizer.Find("pre_tokenizer"), "pretokenizers",
        [this](JsonValue rule, absl::string_view type) { return PreTokenizer(rule, type); });
    if (!status.ok()) return At("pre_tokenizer", status);
    status =
        ForEachRule(tokenizer.Find("decoder"), "decoders",
                    [this](JsonValue rule, absl::string_view type) { return Decoder(rule, type); });
    if (!status.ok()) return At("decoder", status);
    return Conclude();
  }

 private:
  absl::Status Normalizer(JsonValue rule, absl::string_view type);
  absl::Status PreTokenizer(JsonValue rule, absl::string_view type);
  absl::Status Split(JsonValue rule);
  absl::Status ByteLevel(JsonValue rule);
  absl::Status Metaspace(JsonValue rule);
  absl::Status Decoder(JsonValue rule, absl::string_view type);
  absl::Status Conclude();

  TokenizerSpec& spec_;
  bool byte_level_ = false;
  bool marks_spaces_ = false;  // spaces are written as U+2581
  bool decodes_bytes_ = false;
  bool decodes_marks_ = false;
  bool strips_prefix_ = false;
};

absl::Status RuleReader::Normalizer(JsonValue rule, absl::string_view type) {
  if (type == "NFC") {
    spec_.split_rule.normalize_to_nfc = true;
    return CheckMembers(rule, [](absl::string_view, JsonValue) { return false; });
  }
  if (type == "Prepend") {
    spec_.space_prefix = SpacePrefix::kAlways;
    return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
      return key == "prepend" && TextOf(v) == kSpaceMark;
    });
  }
  if (type == "Replace") {
    marks_spaces_ = true;
    return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
      return (key == "pattern" && IsStringPattern(v, " ")) ||
             (key == "content" && TextOf(v) == kSpaceMark);
    });
  }
  return Unsupported(absl::StrCat("type ", Printable(type)));
}

absl::Status RuleReader::PreTokenizer(JsonValue rule, absl::string_view type) {
  // Byte-level symbols would be what later rules see.
  if (byte_level_) return Unsupported("a rule after ByteLevel");
  if (type == "Split") return Split(rule);
  if (type == "ByteLevel") return ByteLevel(rule);
  if (type == "Metaspace") return Metaspace(rule);
  if (type == "Digits") {
    const bool each = IsTrue(rule.Find("individual_digits"));
    spec_.split_rule.patterns.push_back(each ? R"(\p{N})" : R"(\p{N}+)");
    return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
      return key == "individual_digits" && v.Is(JsonType::kBool);
    });
  }
  return Unsupported(absl::StrCat("type ", Printable(type)));
}

absl::Status RuleReader::Split(JsonValue rule) {
  const JsonValue pattern = rule.Find("pattern");
  // Where no space is left, cutting at spaces does nothing.
  if (marks_spaces_ && IsStringPattern(pattern, " ")) return absl::OkStatus();
  LLM_RETURN_IF_ERROR(CheckMembers(rule, [](absl::string_view key, JsonValue v) {
    return key == "pattern" || (key == "behavior" && TextOf(v) == "Isolated") ||
           (key == "invert" && IsFalse(v));
  }));
  if (pattern.num_items() == 1 && pattern.Find("Regex").Is(JsonType::kString)) {
    absl::StatusOr<std::string> regex = PortPattern(TextOf(pattern.Find("Regex")));
    if (!regex.ok()) return At("Split", regex.status());
    spec_.split_rule.patterns.push_back(*std::move(regex));
    return absl::OkStatus();
  }
  const std::string text = TextOf(pattern.Find("String"));
  if (pattern.num_items() != 1 || text.empty()) return Unsupported("Split: pattern");
  spec_.split_rule.patterns.push_back(QuotePattern(text));
  return absl::OkStatus();
}

absl::Status RuleReader::ByteLevel(JsonValue rule) {
  byte_level_ = true;
  // The rule's own pattern is used unless it says no.
  if (!IsFalse(rule.Find("use_regex"))) {
    spec_.split_rule.patterns.emplace_back(ByteLevelPattern());
  }
  return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
    return (key == "add_prefix_space" && IsFalse(v)) || key == "trim_offsets" ||
           (key == "use_regex" && v.Is(JsonType::kBool));
  });
}

absl::Status RuleReader::Metaspace(JsonValue rule) {
  marks_spaces_ = true;
  std::string scheme = TextOf(rule.Find("prepend_scheme"));
  if (scheme.empty()) scheme = IsFalse(rule.Find("add_prefix_space")) ? "never" : "always";
  if (scheme == "always") spec_.space_prefix = SpacePrefix::kUnlessSpace;
  if (scheme == "first") spec_.space_prefix = SpacePrefix::kFirst;
  // Pieces begin with a space; a space before another is a piece of its own.
  if (!IsFalse(rule.Find("split"))) spec_.split_rule.patterns.emplace_back(" [^ ]*|[^ ]+");
  return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
    const std::string text = TextOf(v);
    return (key == "replacement" && text == kSpaceMark) ||
           (key == "prepend_scheme" && (text == "always" || text == "first" || text == "never")) ||
           ((key == "add_prefix_space" || key == "split") && v.Is(JsonType::kBool)) ||
           (key == "str_rep" && text == kSpaceMark);
  });
}

absl::Status RuleReader::Decoder(JsonValue rule, absl::string_view type) {
  if (type == "ByteLevel") {
    decodes_bytes_ = true;
    return absl::OkStatus();
  }
  if (type == "Metaspace") {
    decodes_marks_ = true;
    strips_prefix_ =
        TextOf(rule.Find("prepend_scheme")) != "never" && !IsFalse(rule.Find("add_prefix_space"));
    return absl::OkStatus();
  }
  if (type == "ByteFallback" || type == "Fuse") return absl::OkStatus();
  if (type == "Replace") {
    decodes_marks_ = true;
    return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
      return (key == "pattern" && IsStringPattern(v, kSpaceMark)) ||
             (key == "content" && TextOf(v) == " ");
    });
  }
  if (type == "Strip") {
    strips_prefix_ = true;
    return CheckMembers(rule, [](absl::string_view key, JsonValue v) {
      const absl::StatusOr<int64_t> number = v.GetInt();
      return (key == "content" && TextOf(v) == " ") ||
             (key == "start" && number.ok() && *number == 1) ||
             (key == "stop" && number.ok() && *number == 0);
    });
  }
  return Unsupported(absl::StrCat("type ", Printable(type)));
}

// The parts must be those of one of the two kinds.
absl::Status RuleReader::Conclude() {
  if (byte_level_ && !marks_spaces_ && spec_.space_prefix == SpacePrefix::kNever) {
    spec_.model = TokenizerModel::kBpe;
    if (decodes_bytes_ && !decodes_marks_) return absl::OkStatus();
    return Unsupported("decoder: another one than ByteLevel for a ByteLevel pre_tokenizer");
  }
  if (byte_level_ || !marks_spaces_) {
    return Unsupported("pre_tokenizer: neither ByteLevel nor spaces as U+2581");
  }
  spec_.model = TokenizerModel::kCharBpe;
  if (decodes_bytes_ || !decodes_marks_ ||
      strips_prefix_ != (spec_.space_prefix != SpacePrefix::kNever)) {
    return Unsupported("decoder: one that does not undo the normalizer");
  }
  return absl::OkStatus();
}

// The one id of a special token of a template.
absl::StatusOr<int32_t> TemplateId(JsonValue processor, absl::string_view name) {
  const JsonValue ids = processor.Find("special_tokens").Find(name).Find("ids");
  const absl::StatusOr<int64_t> id = ids.first().GetInt();
  if (ids.num_items() == 1 && id.ok() && *id >= 0 && *id <= INT32_MAX) {
    return static_cast<int32_t>(*id);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("special_tokens: ", Printable(name), ": expected one id"));
}

absl::Status ReadTemplate(JsonValue processor, TokenizerSpec* spec) {
  const JsonValue single = processor.Find("single");
  if (absl::Status array = single.CheckType(JsonType::kArray); !array.ok()) {
    return At("single", array);
  }
  bool behind = false;
  for (JsonValue v = single.first(); v.exists(); v = v.next()) {
    if (v.Find("Sequence").exists() && !behind) {
      behind = true;
      continue;
    }
    const JsonValue special = v.Find("SpecialToken");
    bool* adds = behind ? &spec->add_eos : &spec->add_bos;
    if (!special.exists() || *adds) return Unsupported("single: more than one token on a side");
    *adds = true;
    LLM_ASSIGN_OR_RETURN(const int32_t id, TemplateId(processor, TextOf(special.Find("id"))));
    (behind ? spec->eos_id : spec->bos_id) = id;
  }
  return behind ? absl::OkStatus() : Unsupported("single: no sequence");
}

}  // namespace

absl::Status ReadHubTextRules(JsonValue tokenizer, TokenizerSpec* spec) {
  return RuleReader(spec).Read(tokenizer);
}

absl::Status ReadHubFrame(JsonValue tokenizer, TokenizerSpec* spec) {
  const absl::Status status =
      ForEachRule(tokenizer.Find("post_processor"), "processors",
                  [spec](JsonValue rule, absl::string_view type) -> absl::Status {
                    if (type == "ByteLevel") return absl::OkStatus();  // positions in the text only
                    if (type != "TemplateProcessing")
                      return Unsupported(absl::StrCat("type ", Printable(type)));
                    if (absl::Status read = ReadTemplate(rule, spec); !read.ok())
                      return At(type, read);
                    return absl::OkStatus();
                  });
  return status.ok() ? status : At("post_processor", status);
}

}  // namespace llm
