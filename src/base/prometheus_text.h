// Writes the text format of Prometheus (version 0.0.4): families with their help and type, then
// their samples.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace llm {

// How the integers of a histogram or counter are shown.
enum class MetricUnit { kNumber, kNanosecondsAsSeconds };

class PrometheusText {
 public:
  // `labels` are put on every sample: `a="b",c="d"`, made with Label.
  explicit PrometheusText(std::string labels) : labels_(std::move(labels)) {}

  // Begins a family; its samples follow. `type` is counter, gauge or histogram; counters end in
  // _total.
  void Family(absl::string_view name, absl::string_view type, absl::string_view help);
  // A sample of the family; `labels` are its own, or empty.
  void Sample(absl::string_view labels, uint64_t value, MetricUnit unit = MetricUnit::kNumber);
  void SampleRatio(uint64_t numerator, uint64_t denominator);
  void SampleReal(absl::string_view labels, double value);
  // `buckets` has one more element than `edges`, and is not cumulative.
  void SampleHistogram(absl::string_view labels, absl::Span<const uint64_t> edges,
                       absl::Span<const uint64_t> buckets, uint64_t sum, MetricUnit unit);

  // Families of one sample.
  void Counter(absl::string_view name, absl::string_view help, uint64_t value,
               MetricUnit unit = MetricUnit::kNumber);
  void Gauge(absl::string_view name, absl::string_view help, uint64_t value);

  const std::string& text() const { return text_; }

  // `name="value"`, escaped.
  static std::string Label(absl::string_view name, absl::string_view value);

 private:
  void Line(absl::string_view suffix, absl::string_view labels, absl::string_view value);

  const std::string labels_;
  std::string name_;
  std::string text_;
};

}  // namespace llm
