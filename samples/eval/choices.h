// Multiple choice by log-likelihood: the answer that the model holds most likely counts as its own.
#pragma once

#include <vector>

#include "eval/choice_file.h"
#include "eval/configuration.h"

namespace eval {

// A question as token ids: what is asked, and the letter of each answer behind it.
struct ChoiceItem {
  std::vector<int32_t> prompt;
  std::vector<std::vector<int32_t>> letters;  // [choices], each not empty
  size_t answer;
};

// "<question>\nA. <choice>\nB. <choice>\nAnswer:" and " A", " B"; the front of a prompt that is
// longer than `context` is cut off.
std::vector<ChoiceItem> MakeItems(const std::vector<ChoiceQuestion>& questions,
                                  const inlay::Model& model, size_t context);

// The likeliest choice of each item; the first among equals.
std::vector<size_t> PickChoices(const std::vector<ChoiceItem>& items, Configuration* configuration);

// Shares of the items, NaN where there are none.
double Accuracy(const std::vector<ChoiceItem>& items, const std::vector<size_t>& picks);
double ShareAlike(const std::vector<size_t>& a, const std::vector<size_t>& b);

}  // namespace eval
