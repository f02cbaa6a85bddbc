// Where the counters come from: a file, or a unix socket that answers with them.
#pragma once

#include <string>

namespace top {

// What went wrong; empty: nothing.
std::string ReadSource(const std::string& path, std::string* text);

}  // namespace top
