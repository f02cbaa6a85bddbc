// Seconds are written from integers of ns, so that they are exact and no locale changes them.
#include "src/base/prometheus_text.h"

#include "absl/strings/str_cat.h"

namespace llm {
namespace {

std::string Seconds(uint64_t ns) {
  const uint64_t rest = ns % 1'000'000'000;
  if (rest == 0) return absl::StrCat(ns / 1'000'000'000, ".0");
  std::string fraction = absl::StrCat(1'000'000'000 + rest).substr(1);
  fraction.erase(fraction.find_last_not_of('0') + 1);
  return absl::StrCat(ns / 1'000'000'000, ".", fraction);
}

// Edges are floats to the clients that made these names: "8.0".
std::string Edge(uint64_t edge, MetricUnit unit) {
  return unit == MetricUnit::kNumber ? absl::StrCat(edge, ".0") : Seconds(edge);
}

std::string Value(uint64_t value, MetricUnit unit) {
  return unit == MetricUnit::kNumber ? absl::StrCat(value) : Seconds(value);
}

}  // namespace

std::string PrometheusText::Label(absl::string_view name, absl::string_view value) {
  std::string escaped;
  for (const char c : value) {
    if (c == '\n') {
      escaped += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return absl::StrCat(name, "=\"", escaped, "\"");
}

void PrometheusText::Family(absl::string_view name, absl::string_view type,
                            absl::string_view help) {
  name_ = std::string(name);
  absl::StrAppend(&text_, "# HELP ", name, " ", help, "\n# TYPE ", name, " ", type, "\n");
}

void PrometheusText::Line(absl::string_view suffix, absl::string_view labels,
                          absl::string_view value) {
  const bool both = !labels_.empty() && !labels.empty();
  absl::StrAppend(&text_, name_, suffix, "{", labels_, both ? "," : "", labels);
  absl::StrAppend(&text_, "} ", value, "\n");
}

void PrometheusText::Sample(absl::string_view labels, uint64_t value, MetricUnit unit) {
  Line("", labels, Value(value, unit));
}

void PrometheusText::SampleRatio(uint64_t numerator, uint64_t denominator) {
  const double ratio =
      denominator == 0 ? 0.0 : static_cast<double>(numerator) / static_cast<double>(denominator);
  SampleReal("", ratio);
}

void PrometheusText::SampleReal(absl::string_view labels, double value) {
  Line("", labels, absl::StrCat(value));
}

void PrometheusText::SampleHistogram(absl::string_view labels, absl::Span<const uint64_t> edges,
                                     absl::Span<const uint64_t> buckets, uint64_t sum,
                                     MetricUnit unit) {
  const std::string before = labels.empty() ? "" : absl::StrCat(labels, ",");
  uint64_t count = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    count += buckets[i];
    Line("_bucket", absl::StrCat(before, Label("le", Edge(edges[i], unit))), absl::StrCat(count));
  }
  count += buckets[edges.size()];
  Line("_bucket", absl::StrCat(before, Label("le", "+Inf")), absl::StrCat(count));
  Line("_sum", labels, Value(sum, unit));
  Line("_count", labels, absl::StrCat(count));
}

void PrometheusText::Counter(absl::string_view name, absl::string_view help, uint64_t value,
                             MetricUnit unit) {
  Family(name, "counter", help);
  Sample("", value, unit);
}

void PrometheusText::Gauge(absl::string_view name, absl::string_view help, uint64_t value) {
  Family(name, "gauge", help);
  Sample("", value);
}

}  // namespace llm
