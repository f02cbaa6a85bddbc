// The parser's view of the tokens, with the state that both halves of the parser share.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/tokenizer/jinja/ast.h"
#include "src/tokenizer/jinja/lexer.h"
#include "src/tokenizer/jinja/stack_meter.h"

namespace llm::jinja {

class TokenStream {
 public:
  TokenStream(std::vector<Token> tokens, uint32_t max_depth)
      : tokens_(std::move(tokens)), max_depth_(max_depth) {}

  const Token& Peek(size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  Token Next() {
    const Token token = Peek();
    ++position_;
    return token;
  }
  int line() const { return Peek().line; }

  bool AtOperator(absl::string_view op) const {
    return Peek().kind == TokenKind::kOperator && Peek().text == op;
  }
  bool AtName(absl::string_view name) const {
    return Peek().kind == TokenKind::kName && Peek().text == name;
  }
  bool TakeOperator(absl::string_view op) { return Take(AtOperator(op)); }
  bool TakeName(absl::string_view name) { return Take(AtName(name)); }
  bool TakeKind(TokenKind kind) { return Take(Peek().kind == kind); }

  absl::Status Error(absl::string_view what) const { return SyntaxError(line(), what); }
  absl::Status Unexpected(absl::string_view wanted) const {
    const absl::string_view found =
        Peek().kind == TokenKind::kEnd ? "the end of the template" : Peek().text.substr(0, 40);
    return Error(absl::StrCat("expected ", wanted, ", found ", found));
  }
  absl::Status ExpectOperator(absl::string_view op) {
    return TakeOperator(op) ? absl::OkStatus() : Unexpected(absl::StrCat("'", op, "'"));
  }
  absl::Status ExpectBlockEnd() {
    return TakeKind(TokenKind::kBlockEnd) ? absl::OkStatus() : Unexpected("'%}'");
  }

  NameId Intern(absl::string_view name) {
    const auto [found, added] =
        ids_.try_emplace(std::string(name), static_cast<NameId>(names_.size()));
    if (added) names_.push_back(std::string(name));
    return found->second;
  }
  std::vector<std::string> TakeNames() { return std::move(names_); }

  // Levels of recursion that the parser is in.
  class Depth {
   public:
    explicit Depth(TokenStream& stream) : stream_(stream) { ++stream_.depth_; }
    ~Depth() { --stream_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    absl::Status status() const {
      const bool fits = stream_.stack_.Within(stream_.max_depth_);
      return stream_.CheckDepth(fits ? stream_.depth_ : UINT32_MAX);
    }

   private:
    TokenStream& stream_;
  };
  absl::Status CheckDepth(uint32_t depth) const {
    if (depth <= max_depth_) return absl::OkStatus();
    return Error(absl::StrCat("nests deeper than ", max_depth_));
  }

  // Which of the special names the macro that is being parsed mentions.
  struct MacroUses {
    bool caller = false;
    bool varargs = false;
    bool kwargs = false;
  };
  MacroUses uses;

 private:
  bool Take(bool matches) {
    position_ += matches ? 1 : 0;
    return matches;
  }

  std::vector<Token> tokens_;
  uint32_t max_depth_;
  StackMeter stack_;
  size_t position_ = 0;
  uint32_t depth_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, NameId, std::less<>> ids_;
};

}  // namespace llm::jinja
