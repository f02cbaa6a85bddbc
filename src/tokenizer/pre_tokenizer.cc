// Interpreted matching, never JIT: a host may forbid executable pages, and the limits below hold
// only without it.
#include "src/tokenizer/pre_tokenizer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// A greedy run counts one step for each character that it gives back: 4 GiB of them is beyond
// kMaxTextBytes, 100 million is 100 MB of one run. Depth and heap stay flat since no pattern
// repeats a group.
constexpr uint32_t kMatchLimit = 100'000'000;
// Nothing is known of a pattern from a file: it may run in circles, but not for a second.
constexpr uint32_t kForeignMatchLimit = 10'000'000;
constexpr size_t kMaxPatterns = 16;
constexpr size_t kMaxPatternBytes = 8192;
constexpr uint32_t kDepthLimit = 1000;
constexpr uint32_t kHeapLimitKib = 4096;

PCRE2_SPTR AsPcre(absl::string_view text) { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

std::string PcreMessage(int error) {
  PCRE2_UCHAR buffer[256] = {};
  pcre2_get_error_message(error, buffer, sizeof(buffer));
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(absl::string_view name) {
  std::unique_ptr<PreTokenizer> result(new PreTokenizer);
  if (name.empty()) {
    return absl::UnimplementedError("tokenizer: the model names no pre-tokenizer");
  }
  PreTokenizerRule rule;
  if (!FindPreTokenizerRule(name, &rule)) {
    return absl::UnimplementedError(
        absl::StrCat("tokenizer: pre-tokenizer \"", name.substr(0, 100), "\" is not supported"));
  }
  result->normalize_to_nfc_ = rule.normalize_to_nfc;
  result->prefer_whole_pieces_ = rule.prefer_whole_pieces;
  LLM_RETURN_IF_ERROR(result->SetLimits(kMatchLimit));
  for (absl::string_view pattern : rule.stages) LLM_RETURN_IF_ERROR(result->Compile(pattern));
  return result;
}

absl::StatusOr<std::unique_ptr<PreTokenizer>> PreTokenizer::Create(const SplitRule& rule) {
  std::unique_ptr<PreTokenizer> result(new PreTokenizer);
  result->normalize_to_nfc_ = rule.normalize_to_nfc;
  result->prefer_whole_pieces_ = rule.prefer_whole_pieces;
  if (rule.patterns.size() > kMaxPatterns) {
    return absl::InvalidArgumentError(
        absl::StrCat("tokenizer: ", rule.patterns.size(), " patterns, at most ", kMaxPatterns));
  }
  LLM_RETURN_IF_ERROR(result->SetLimits(kForeignMatchLimit));
  for (const std::string& pattern : rule.patterns) {
    if (pattern.size() > kMaxPatternBytes) {
      return absl::InvalidArgumentError(absl::StrCat("tokenizer: a pattern of ", pattern.size(),
                                                     " bytes, at most ", kMaxPatternBytes));
    }
    if (absl::Status compiled = result->Compile(pattern); !compiled.ok()) {
      return absl::InvalidArgumentError(compiled.message());
    }
  }
  return result;
}

absl::Status PreTokenizer::SetLimits(uint32_t match_limit) {
  context_.reset(pcre2_match_context_create(nullptr));
  if (context_ == nullptr) return absl::ResourceExhaustedError("tokenizer: no memory");
  pcre2_set_match_limit(context_.get(), match_limit);
  pcre2_set_depth_limit(context_.get(), kDepthLimit);
  pcre2_set_heap_limit(context_.get(), kHeapLimitKib);
  return absl::OkStatus();
}

absl::Status PreTokenizer::Compile(absl::string_view pattern) {
  const std::string expanded = ExpandWhitespaceClasses(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  std::unique_ptr<pcre2_code, PcreDeleter> code(pcre2_compile(
      AsPcre(expanded), expanded.size(), PCRE2_UTF | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr));
  if (code == nullptr) {
    return absl::InternalError(absl::StrCat("tokenizer: pre-tokenizer pattern, offset ", offset,
                                            ": ", PcreMessage(error)));
  }
  stages_.push_back(std::move(code));
  return absl::OkStatus();
}

absl::StatusOr<PreTokenizer::Scratch> PreTokenizer::NewScratch() const {
  Scratch scratch;
  scratch.match_data.reset(pcre2_match_data_create(1, nullptr));
  if (scratch.match_data == nullptr) return absl::ResourceExhaustedError("tokenizer: no memory");
  return scratch;
}

absl::Status PreTokenizer::Split(absl::string_view text, Scratch* scratch,
                                 std::vector<absl::string_view>* pieces) const {
  pieces->clear();
  if (!text.empty()) pieces->push_back(text);
  for (const auto& stage : stages_) {
    scratch->next_pieces.clear();
    for (absl::string_view piece : *pieces) {
      LLM_RETURN_IF_ERROR(SplitPiece(stage.get(), piece, scratch));
    }
    std::swap(*pieces, scratch->next_pieces);
  }
  return absl::OkStatus();
}

// A piece is a subject of its own: look-ahead must not see the next one.
absl::Status PreTokenizer::SplitPiece(const pcre2_code* code, absl::string_view piece,
                                      Scratch* scratch) const {
  std::vector<absl::string_view>* out = &scratch->next_pieces;
  size_t done = 0;
  while (done < piece.size()) {
    const int result =
        pcre2_match(code, AsPcre(piece), piece.size(), done, PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,
                    scratch->match_data.get(), context_.get());
    if (result == PCRE2_ERROR_NOMATCH) break;
    if (result < 0) {
      return absl::ResourceExhaustedError(absl::StrCat("tokenizer: splitting the text at byte ",
                                                       done, " of a run of ", piece.size(),
                                                       " bytes: ", PcreMessage(result)));
    }
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(scratch->match_data.get());
    if (range[0] > done) out->push_back(piece.substr(done, range[0] - done));
    out->push_back(piece.substr(range[0], range[1] - range[0]));
    done = range[1];
  }
  if (done < piece.size()) out->push_back(piece.substr(done));
  return absl::OkStatus();
}

}  // namespace llm
