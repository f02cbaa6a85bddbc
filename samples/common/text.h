// Text in and out: whole files, JSON strings, sizes for people.
#pragma once

#include <cstdint>
#include <string>

namespace tools {

// Exit with a message on failure.
std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& text);

// printf into a string.
__attribute__((format(printf, 1, 2))) std::string Format(const char* format, ...);

// Quoted and escaped; what is not UTF-8 in `text` stays.
std::string JsonString(const std::string& text);

// "64 B", "1.5 MiB".
std::string Bytes(uint64_t bytes);

}  // namespace tools
