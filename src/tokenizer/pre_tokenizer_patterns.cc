// Patterns as the models' authors published them in tokenizer.json, under the names of GGUF's
// tokenizer.ggml.pre.
#include "src/tokenizer/pre_tokenizer_patterns.h"

namespace llm {
namespace {

constexpr absl::string_view kDigit = R"(\p{N})";
constexpr absl::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr absl::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr absl::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr absl::string_view kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr absl::string_view kCjkAndKana = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)";
constexpr absl::string_view kDeepseekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

absl::string_view ByteLevelPattern() { return kGpt2; }

bool FindPreTokenizerRule(absl::string_view name, PreTokenizerRule* rule) {
  *rule = {};
  if (name == "gpt-2" || name == "default") {
    rule->stages = {kGpt2};
  } else if (name == "smollm") {
    rule->stages = {kDigit, kGpt2};
  } else if (name == "llama-bpe" || name == "llama3" || name == "llama-v3") {
    rule->stages = {kLlama3};
    rule->prefer_whole_pieces = true;
  } else if (name == "qwen2" || name == "deepseek-r1-qwen") {
    rule->stages = {kQwen2};
    rule->normalize_to_nfc = true;
  } else if (name == "gpt-4o") {
    rule->stages = {kO200k};
  } else if (name == "deepseek-v3") {
    rule->stages = {R"(\p{N}{1,3})", kCjkAndKana, kDeepseekV3};
  } else if (name == "deepseek-coder") {
    rule->stages = {R"([\r\n])", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                    R"([\x{4E00}-\x{9FA5}\x{0800}-\x{4E00}\x{AC00}-\x{D7FF}]+)", kDigit};
  } else {
    return false;
  }
  return true;
}

std::string ExpandWhitespaceClasses(absl::string_view pattern) {
  constexpr absl::string_view kSpaces =
      R"(\x{9}-\x{D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
  std::string expanded;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    if (pattern[i] != '\\') {
      if (pattern[i] == '[') in_class = true;
      if (pattern[i] == ']') in_class = false;
      expanded += pattern[i];
      continue;
    }
    ++i;
    if (next == 's' || next == 'S') {
      const absl::string_view open = in_class ? "" : next == 's' ? "[" : "[^";
      expanded.append(open.data(), open.size()).append(kSpaces.data(), kSpaces.size());
      if (!in_class) expanded += ']';
    } else {
      expanded += '\\';
      expanded += next;
    }
  }
  return expanded;
}

}  // namespace llm
