// What the two tokenizer models have in common: text without control tokens becomes ids.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace llm {

class TextEncoder {
 public:
  virtual ~TextEncoder() = default;
  // Appends the ids of `text`, any bytes, which begins the input (`at_start`) or follows a control
  // token. Thread-safe. REQUIRES: text.size() <= kMaxTextBytes.
  virtual absl::Status Encode(absl::string_view text, bool at_start,
                              std::vector<int32_t>* ids) const = 0;
  virtual size_t size_bytes() const = 0;
};

}  // namespace llm
