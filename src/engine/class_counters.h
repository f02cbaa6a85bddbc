// What requests came to, by their request_class.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "absl/types/span.h"
#include "src/engine/histograms.h"

namespace llm {

// Those that are kept of each class as well.
inline constexpr HistogramId kClassHistograms[] = {HistogramId::kTtft, HistogramId::kTokenGap,
                                                   HistogramId::kCompletionTime};

class ClassCounters {
 public:
  static constexpr size_t kMaxClasses = 32;  // those that come later count as the last of them

  struct Class {
    uint32_t id = 0;
    uint64_t finished_requests = 0;
    uint64_t good_requests = 0;  // as TargetCounters has it
    uint64_t generated_tokens = 0;
    std::array<Histogram, std::size(kClassHistograms)> histograms{};  // as kClassHistograms

    // Null: it is not kept of classes.
    const Histogram* Of(HistogramId which) const {
      const auto found = std::find(std::begin(kClassHistograms), std::end(kClassHistograms), which);
      if (found == std::end(kClassHistograms)) return nullptr;
      return &histograms[static_cast<size_t>(found - std::begin(kClassHistograms))];
    }
    Histogram* Of(HistogramId which) {
      return const_cast<Histogram*>(static_cast<const Class*>(this)->Of(which));
    }
  };

  ClassCounters() = default;
  // Of the classes in use alone: each step copies them.
  ClassCounters(const ClassCounters& other) { *this = other; }
  ClassCounters& operator=(const ClassCounters& other) {
    size_ = other.size_;
    std::copy_n(other.classes_.begin(), size_, classes_.begin());
    return *this;
  }

  // Allocates nothing.
  Class* Of(uint32_t id) {
    for (Class& known : absl::MakeSpan(classes_).first(size_)) {
      if (known.id == id) return &known;
    }
    if (size_ == kMaxClasses) return &classes_.back();
    classes_[size_].id = id;
    return &classes_[size_++];
  }
  // The class that requests of `id` count as; `none` before the first of them.
  const Class& Find(uint32_t id, const Class& none) const {
    for (const Class& known : classes()) {
      if (known.id == id) return known;
    }
    return size_ == kMaxClasses ? classes_.back() : none;
  }
  absl::Span<const Class> classes() const { return {classes_.data(), size_}; }

 private:
  std::array<Class, kMaxClasses> classes_{};  // in order of their first request
  size_t size_ = 1;                           // class 0, which is that of a request that names none
};

}  // namespace llm
