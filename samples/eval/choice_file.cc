// As much JSON as such lines hold: one object of strings, numbers, words and flat arrays.
#include "eval/choice_file.h"

#include <cctype>
#include <cstdlib>
#include <sstream>

#include "common/flags.h"
#include "common/text.h"

namespace eval {
namespace {

void AppendUtf8(uint32_t code, std::string* out) {
  const auto add = [out](uint32_t byte) { *out += static_cast<char>(byte); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0 | code >> 6);
  } else {
    if (code < 0x10000) {
      add(0xE0 | code >> 12);
    } else {
      add(0xF0 | code >> 18);
      add(0x80 | (code >> 12 & 0x3F));
    }
    add(0x80 | (code >> 6 & 0x3F));
  }
  add(0x80 | (code & 0x3F));
}

// Each function returns false where the line is not what it reads.
class LineReader {
 public:
  explicit LineReader(const std::string& line) : line_(line) {}

  bool ReadQuestion(ChoiceQuestion* out) {
    if (!Take('{')) return false;
    bool has_question = false, has_answer = false;
    do {
      std::string key, word;
      if (!ReadString(&key) || !Take(':')) return false;
      if (key == "question") {
        has_question = ReadString(&out->question);
        if (!has_question) return false;
      } else if (key == "choices") {
        if (!ReadArray(&out->choices)) return false;
      } else if (key == "answer") {
        if (!ReadWord(&word) || word.size() > 3 || !std::isdigit(word[0])) return false;
        out->answer = static_cast<size_t>(std::atoi(word.c_str()));
        has_answer = true;
      } else if (!SkipValue()) {
        return false;
      }
    } while (Take(','));
    return Take('}') && AtEnd() && has_question && has_answer && out->choices.size() >= 2 &&
           out->answer < out->choices.size();
  }

 private:
  void SkipSpace() {
    while (at_ < line_.size() && std::isspace(static_cast<unsigned char>(line_[at_]))) ++at_;
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == line_.size();
  }
  bool Take(char c) {
    SkipSpace();
    if (at_ >= line_.size() || line_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool ReadHex(uint32_t* code) {
    if (at_ + 4 > line_.size()) return false;
    char* end = nullptr;
    const std::string digits = line_.substr(at_, 4);
    *code = static_cast<uint32_t>(std::strtoul(digits.c_str(), &end, 16));
    at_ += 4;
    return *end == '\0';
  }
  bool ReadEscape(std::string* out) {
    if (at_ >= line_.size()) return false;
    const char c = line_[at_++];
    const std::string names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
    if (const size_t i = names.find(c); i != std::string::npos) {
      *out += values[i];
      return true;
    }
    uint32_t code = 0, low = 0;
    if (c != 'u' || !ReadHex(&code)) return false;
    if (code >= 0xD800 && code < 0xDC00) {
      if (line_.compare(at_, 2, "\\u") != 0) return false;
      at_ += 2;
      if (!ReadHex(&low) || low < 0xDC00 || low > 0xDFFF) return false;
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(code, out);
    return true;
  }
  bool ReadString(std::string* out) {
    if (!Take('"')) return false;
    while (at_ < line_.size() && line_[at_] != '"') {
      const char c = line_[at_++];
      if (c != '\\') {
        *out += c;
      } else if (!ReadEscape(out)) {
        return false;
      }
    }
    return Take('"');
  }
  bool ReadWord(std::string* out) {  // a number, true, false, null
    SkipSpace();
    const size_t begin = at_;
    while (at_ < line_.size() && (std::isalnum(static_cast<unsigned char>(line_[at_])) ||
                                  std::string("+-.").find(line_[at_]) != std::string::npos))
      ++at_;
    *out = line_.substr(begin, at_ - begin);
    return at_ > begin;
  }
  bool ReadArray(std::vector<std::string>* out) {
    if (!Take('[')) return false;
    if (Take(']')) return true;
    do {
      std::string text;
      if (!ReadString(&text)) return false;
      out->push_back(std::move(text));
    } while (Take(','));
    return Take(']');
  }
  bool SkipValue() {
    std::string ignored;
    std::vector<std::string> list;
    SkipSpace();
    if (at_ < line_.size() && line_[at_] == '"') return ReadString(&ignored);
    if (at_ < line_.size() && line_[at_] == '[') return ReadArray(&list);
    return ReadWord(&ignored);
  }

  const std::string& line_;
  size_t at_ = 0;
};

}  // namespace

std::vector<ChoiceQuestion> ParseChoices(const std::string& text, const std::string& name) {
  std::vector<ChoiceQuestion> questions;
  std::istringstream lines(text);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.find_first_not_of(" \r\t") == std::string::npos) continue;
    ChoiceQuestion question;
    if (!LineReader(line).ReadQuestion(&question))
      tools::Fail(tools::Format("%s: line %zu is no question with choices and an answer",
                                name.c_str(), number));
    questions.push_back(std::move(question));
  }
  if (questions.empty()) tools::Fail(name + ": no questions");
  return questions;
}

}  // namespace eval
