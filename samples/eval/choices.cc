// Letters that are one token each, as with most tokenizers, are read from one row of logits.
#include "eval/choices.h"

#include <algorithm>
#include <cmath>

#include "common/text.h"
#include "eval/windows.h"

namespace eval {
namespace {

// What `continuation` adds to the ids of `prompt`.
std::vector<int32_t> Continuation(const inlay::Model& model, const std::string& prompt,
                                  size_t prompt_tokens, const std::string& continuation) {
  std::vector<int32_t> ids = Tokenize(model, prompt + continuation);
  ids.erase(ids.begin(),
            ids.begin() + static_cast<std::ptrdiff_t>(std::min(prompt_tokens, ids.size())));
  if (ids.empty()) tools::Fail("an answer has no tokens of its own behind: " + prompt);
  return ids;
}

bool AreSingleTokens(const ChoiceItem& item) {
  return std::all_of(item.letters.begin(), item.letters.end(),
                     [](const std::vector<int32_t>& ids) { return ids.size() == 1; });
}

std::vector<double> ScoreSingleTokens(const ChoiceItem& item, Configuration* configuration) {
  std::vector<int32_t> ids = item.prompt;
  ids.push_back(item.letters[0][0]);
  std::vector<double> scores;
  configuration->Score(ids, ids.size() - 1, ids.size(), [&](const llm_score_row& row) {
    for (const std::vector<int32_t>& letter : item.letters)
      scores.push_back(static_cast<double>(row.logits[letter[0]]));
  });
  return scores;
}

std::vector<double> ScoreTexts(const ChoiceItem& item, Configuration* configuration) {
  std::vector<double> scores;
  for (const std::vector<int32_t>& letter : item.letters) {
    std::vector<int32_t> ids = item.prompt;
    ids.insert(ids.end(), letter.begin(), letter.end());
    double sum = 0;
    for (const float logprob : configuration->Score(ids, item.prompt.size(), ids.size(), nullptr))
      sum += static_cast<double>(logprob);
    scores.push_back(sum);
  }
  return scores;
}

}  // namespace

std::vector<ChoiceItem> MakeItems(const std::vector<ChoiceQuestion>& questions,
                                  const inlay::Model& model, size_t context) {
  const int32_t bos = LeadingBos(model);
  std::vector<ChoiceItem> items;
  for (const ChoiceQuestion& question : questions) {
    std::string prompt = question.question + "\n";
    for (size_t i = 0; i < question.choices.size(); ++i)
      prompt += tools::Format("%c. ", static_cast<int>('A' + i)) + question.choices[i] + "\n";
    prompt += "Answer:";
    ChoiceItem item;
    item.answer = question.answer;
    item.prompt = Tokenize(model, prompt);
    size_t longest = 0;
    for (size_t i = 0; i < question.choices.size(); ++i) {
      item.letters.push_back(Continuation(model, prompt, item.prompt.size(),
                                          tools::Format(" %c", static_cast<int>('A' + i))));
      longest = std::max(longest, item.letters.back().size());
    }
    const size_t room = context - std::min(context - 1, longest) - (bos >= 0 ? 1 : 0);
    if (room == 0) tools::Fail("--context: too short for a question");
    const size_t cut = item.prompt.size() > room ? item.prompt.size() - room : 0;
    item.prompt.erase(item.prompt.begin(), item.prompt.begin() + static_cast<std::ptrdiff_t>(cut));
    if (bos >= 0) item.prompt.insert(item.prompt.begin(), bos);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<size_t> PickChoices(const std::vector<ChoiceItem>& items,
                                Configuration* configuration) {
  std::vector<size_t> picks;
  for (const ChoiceItem& item : items) {
    const std::vector<double> scores = AreSingleTokens(item)
                                           ? ScoreSingleTokens(item, configuration)
                                           : ScoreTexts(item, configuration);
    picks.push_back(
        static_cast<size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
  }
  return picks;
}

double Accuracy(const std::vector<ChoiceItem>& items, const std::vector<size_t>& picks) {
  std::vector<size_t> answers;
  for (const ChoiceItem& item : items) answers.push_back(item.answer);
  return ShareAlike(answers, picks);
}

double ShareAlike(const std::vector<size_t>& a, const std::vector<size_t>& b) {
  if (a.empty() || a.size() != b.size()) return NAN;
  size_t alike = 0;
  for (size_t i = 0; i < a.size(); ++i) alike += a[i] == b[i];
  return static_cast<double>(alike) / static_cast<double>(a.size());
}

}  // namespace eval
