// Holds back at most the three bytes that a four-byte character may still lack.
#include "src/tokenizer/detokenizer.h"

#include "src/base/dcheck.h"
#include "src/tokenizer/utf8.h"

namespace llm {
namespace {

void AppendView(absl::string_view view, std::string* text) {
  text->append(view.data(), view.size());
}

}  // namespace

void Detokenizer::Append(int32_t id, std::string* text) {
  LLM_DCHECK(id >= 0 && id < tokenizer_->vocab_size());
  AppendView(tokenizer_->TokenBytes(id, render_special_), &pending_);
  absl::string_view rest = pending_;
  while (!rest.empty()) {
    const size_t valid = ValidUtf8Prefix(rest);
    AppendView(rest.substr(0, valid), text);
    rest.remove_prefix(valid);
    const Utf8Part part = NextUtf8Part(rest);
    if (part.kind == Utf8Kind::kIncomplete) break;
    AppendView(kReplacementCharacter, text);
    rest.remove_prefix(part.length);
  }
  pending_.erase(0, pending_.size() - rest.size());
}

void Detokenizer::Finish(std::string* text) {
  if (!pending_.empty()) AppendView(kReplacementCharacter, text);
  pending_.clear();
}

}  // namespace llm
