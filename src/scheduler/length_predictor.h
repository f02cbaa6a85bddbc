// Predicts how long outputs become from how long those before them became.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace llm {

class LengthPredictor {
 public:
  static constexpr size_t kMaxClasses = 64;   // those that come later are taken for one
  static constexpr size_t kLengths = 512;     // remembered of a class, the last ones
  static constexpr size_t kLeastLengths = 8;  // fewer tell nothing

  // Makes room for the lengths of a class. Throws std::bad_alloc with nothing changed.
  void Add(uint32_t request_class);
  // An output of the class came to its own end. REQUIRES: the class was added.
  void Note(uint32_t request_class, int32_t length);

  // The length in all of an output that has `generated` tokens by now: of the lengths that are
  // longer, the one at place `rank` in [0, 1). Ranks spread evenly over requests give the sum of
  // their lengths without bias, where a quantile for all would reserve too much. Between generated
  // + 1 and `most`; evenly in between where too few lengths are known.
  int32_t Predict(uint32_t request_class, int32_t generated, double rank, int32_t most) const;
  // How far off such a prediction is: half the distance between the lengths at ranks 0.16 and 0.84.
  double Spread(uint32_t request_class, int32_t generated, int32_t most) const {
    return (Predict(request_class, generated, 0.84, most) -
            Predict(request_class, generated, 0.16, most)) /
           2.0;
  }

 private:
  struct Class {
    uint32_t id = 0;
    std::vector<int32_t> ring;  // in order of arrival
    size_t next = 0;
    std::vector<int32_t> sorted;
  };
  Class* Find(uint32_t request_class) const;

  std::vector<std::unique_ptr<Class>> classes_;  // in order of their first request
};

}  // namespace llm
