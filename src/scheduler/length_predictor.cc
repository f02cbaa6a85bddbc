// A sorted copy beside the ring: a prediction is two binary searches.
#include "src/scheduler/length_predictor.h"

#include <algorithm>

namespace llm {

LengthPredictor::Class* LengthPredictor::Find(uint32_t request_class) const {
  for (const std::unique_ptr<Class>& known : classes_) {
    if (known->id == request_class) return known.get();
  }
  return classes_.size() == kMaxClasses ? classes_.back().get() : nullptr;
}

void LengthPredictor::Add(uint32_t request_class) {
  if (Find(request_class) != nullptr) return;
  auto added = std::make_unique<Class>();
  added->id = request_class;
  added->ring.reserve(kLengths);
  added->sorted.reserve(kLengths);
  classes_.push_back(std::move(added));
}

void LengthPredictor::Note(uint32_t request_class, int32_t length) {
  Class* known = Find(request_class);
  std::vector<int32_t>& sorted = known->sorted;
  if (known->ring.size() < kLengths) {
    known->ring.push_back(length);
  } else {
    sorted.erase(std::lower_bound(sorted.begin(), sorted.end(), known->ring[known->next]));
    known->ring[known->next] = length;
  }
  known->next = (known->next + 1) % kLengths;
  sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), length), length);
}

int32_t LengthPredictor::Predict(uint32_t request_class, int32_t generated, double rank,
                                 int32_t most) const {
  const int32_t least = std::min(generated + 1, most);
  const Class* known = Find(request_class);
  if (known != nullptr && known->sorted.size() >= kLeastLengths) {
    const auto longer = std::upper_bound(known->sorted.begin(), known->sorted.end(), generated);
    const auto count = known->sorted.end() - longer;
    if (count > 0) {
      return std::clamp(longer[static_cast<ptrdiff_t>(rank * static_cast<double>(count))], least,
                        most);
    }
    // Longer than all before it: it may end anywhere.
  }
  return least + static_cast<int32_t>(rank * (most - least));
}

}  // namespace llm
