// Where the counters come from: a file, or a unix socket that answers with them.
#pragma once

#include <string>

namespace top {

struct Reading {
  std::string text;
  double time_s = 0;  // when it was written: of a socket now
};

// What went wrong; empty: nothing.
std::string ReadSource(const std::string& path, Reading* reading);

// Seconds since 1970, as file systems count.
double NowSeconds();

}  // namespace top
