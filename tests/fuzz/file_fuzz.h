// The entry of fuzzers of files with checksums, which no random bytes would match.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace llm {

// The first byte says what becomes of the rest. Even: that is the file. Odd: `complete` makes sizes
// and checksums fit, so that the checks behind them are reached. `walk` says what is wrong, if
// anything is: the end of the process.
int FuzzFile(const uint8_t* data, size_t size, const char* fuzzer, void (*complete)(std::string*),
             std::string (*walk)(const std::string&));

}  // namespace llm
