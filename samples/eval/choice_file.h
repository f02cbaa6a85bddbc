// Questions with several answers, of which one is right, one JSON object a line.
#pragma once

#include <string>
#include <vector>

namespace eval {

// {"question": "...", "choices": ["...", ...], "answer": 0}; other members are passed over.
struct ChoiceQuestion {
  std::string question;
  std::vector<std::string> choices;
  size_t answer = 0;  // index of the right one
};

// Fails, naming the line, where one is something else. `name` is the file's.
std::vector<ChoiceQuestion> ParseChoices(const std::string& text, const std::string& name);

}  // namespace eval
