// Reads as much of Prometheus' text format as llm_metrics_text writes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace top {

using Labels = std::map<std::string, std::string>;

struct Sample {
  std::string name;
  Labels labels;
  double value = 0;
};

// A histogram's buckets, not cumulative.
struct Histogram {
  std::vector<double> edges;   // upper ones; the last is infinite
  std::vector<double> counts;  // [edges]
  double Count() const;
  // Linear within a bucket; the last finite edge for what lies beyond it. NaN without samples.
  double Quantile(double quantile) const;
};

class Snapshot {
 public:
  // What is wrong with the text; empty: nothing.
  std::string Parse(const std::string& text);

  bool Has(const std::string& name) const;
  // Sum over the samples of that name that have `labels` among theirs; 0 without any.
  double Value(const std::string& name, const Labels& labels = {}) const;
  Histogram OfHistogram(const std::string& name) const;
  // Of the first sample that has the label.
  std::string Label(const std::string& label) const;
  // The values of a label of that name's samples, in their order.
  std::vector<std::string> LabelValues(const std::string& name, const std::string& label) const;

 private:
  std::vector<Sample> samples_;
};

// What came between two snapshots of one histogram; `now` itself when they do not fit each other.
Histogram Difference(const Histogram& now, const Histogram& before);

}  // namespace top
