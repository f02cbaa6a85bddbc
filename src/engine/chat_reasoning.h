// The reasoning of a chat's messages under each name that templates read it by.
#pragma once

#include <string>

namespace llm {

// A message that has `reasoning_content`, `thinking` or `reasoning` (the first of them that is not
// null) gets the first two, as transformers does before it renders; a `thinking` that is there
// stays. REQUIRES: JSON whose nesting is bounded, with an array "messages".
std::string WithReasoningNames(std::string context);

}  // namespace llm
