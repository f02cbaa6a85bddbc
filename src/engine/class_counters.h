// What requests came to, by their request_class.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace llm {

class ClassCounters {
 public:
  static constexpr size_t kMaxClasses = 32;  // those that come later count as the last of them

  struct Class {
    uint32_t id = 0;
    uint64_t finished_requests = 0;
    uint64_t good_requests = 0;  // as TargetCounters has it
    uint64_t generated_tokens = 0;
    uint64_t ttft_requests = 0;  // that got a token
    uint64_t ttft_ns = 0;        // of those
  };

  // Allocates nothing.
  Class* Of(uint32_t id) {
    for (Class& known : absl::MakeSpan(classes_).first(size_)) {
      if (known.id == id) return &known;
    }
    if (size_ == kMaxClasses) return &classes_.back();
    classes_[size_].id = id;
    return &classes_[size_++];
  }
  absl::Span<const Class> classes() const { return {classes_.data(), size_}; }

 private:
  std::array<Class, kMaxClasses> classes_{};  // in order of their first request
  size_t size_ = 1;                           // class 0, which is that of a request that names none
};

}  // namespace llm
