// Which tokens end an answer, as a GGUF file names them.
#pragma once

#include <cstdint>
#include <vector>

#include "src/loader/weight_source.h"
#include "src/tokenizer/tokenizer.h"

namespace llm {

// The end-of-text token, and the end-of-turn and end-of-message tokens where the file names them;
// ascending, each once.
std::vector<int32_t> EndIds(const Metadata& metadata, const Tokenizer& tokenizer);

}  // namespace llm
