// Cuts a text's tokens into the windows that are scored.
#pragma once

#include <cstdint>
#include <inlay/llm.hpp>
#include <string>
#include <vector>

namespace eval {

// The BOS that the model puts before a text; -1: it puts none.
int32_t LeadingBos(const inlay::Model& model);

// The ids of a text without special tokens.
std::vector<int32_t> Tokenize(const inlay::Model& model, const std::string& text);

// `count` windows (0: as many as there are) of `context` ids without overlap, each with the BOS,
// where there is one, and context - 1 ids of the text. Fewer when the text ends before.
std::vector<std::vector<int32_t>> CutWindows(const std::vector<int32_t>& ids, int32_t bos,
                                             size_t context, size_t count);

}  // namespace eval
