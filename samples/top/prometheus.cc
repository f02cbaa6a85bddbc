// Comments are skipped: names alone say what a sample is.
#include "top/prometheus.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

namespace top {
namespace {

// Reads `name="value",...}` from *at, which ends behind the brace.
bool ParseLabels(const std::string& line, size_t* at, Labels* labels) {
  while (*at < line.size() && line[*at] != '}') {
    const size_t equals = line.find("=\"", *at);
    if (equals == std::string::npos) return false;
    std::string& value = (*labels)[line.substr(*at, equals - *at)];
    size_t i = equals + 2;
    for (; i < line.size() && line[i] != '"'; ++i) {
      const bool escaped = line[i] == '\\' && i + 1 < line.size();
      if (escaped) ++i;
      value += escaped && line[i] == 'n' ? '\n' : line[i];
    }
    if (i >= line.size()) return false;
    *at = i + 1;
    if (*at < line.size() && line[*at] == ',') ++*at;
  }
  return (*at)++ < line.size();
}

bool ParseNumber(const std::string& text, double* value) {
  char* end = nullptr;
  *value = std::strtod(text.c_str(), &end);  // reads +Inf too
  return !text.empty() && *end == '\0';
}

bool ParseSample(const std::string& line, Sample* sample) {
  size_t at = line.find_first_of("{ ");
  if (at == std::string::npos || at == 0) return false;
  sample->name = line.substr(0, at);
  if (line[at] == '{' && !ParseLabels(line, &++at, &sample->labels)) return false;
  return at < line.size() && line[at] == ' ' && ParseNumber(line.substr(at + 1), &sample->value);
}

bool Contains(const Labels& all, const Labels& wanted) {
  for (const auto& [name, value] : wanted) {
    const auto found = all.find(name);
    if (found == all.end() || found->second != value) return false;
  }
  return true;
}

}  // namespace

double Histogram::Count() const {
  double sum = 0;
  for (const double count : counts) sum += count;
  return sum;
}

double Histogram::Quantile(double quantile) const {
  const double wanted = quantile * Count();
  double below = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] <= 0 || below + counts[i] < wanted) {
      below += counts[i];
      continue;
    }
    const double low = i == 0 ? 0 : edges[i - 1];
    if (!std::isfinite(edges[i])) return low;
    return low + (edges[i] - low) * (wanted - below) / counts[i];
  }
  return NAN;
}

Histogram Difference(const Histogram& now, const Histogram& before) {
  if (now.edges != before.edges) return now;
  Histogram difference = now;
  for (size_t i = 0; i < now.counts.size(); ++i) {
    difference.counts[i] -= before.counts[i];
    if (difference.counts[i] < 0) return now;  // another process took the name over
  }
  return difference;
}

std::string Snapshot::Parse(const std::string& text) {
  samples_.clear();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    Sample sample;
    if (!ParseSample(line, &sample)) return "no sample: " + line.substr(0, 80);
    samples_.push_back(std::move(sample));
  }
  return samples_.empty() ? "no samples" : "";
}

bool Snapshot::Has(const std::string& name) const {
  return std::any_of(samples_.begin(), samples_.end(),
                     [&](const Sample& sample) { return sample.name == name; });
}

double Snapshot::Value(const std::string& name, const Labels& labels) const {
  double sum = 0;
  for (const Sample& sample : samples_)
    if (sample.name == name && Contains(sample.labels, labels)) sum += sample.value;
  return sum;
}

Histogram Snapshot::OfHistogram(const std::string& name) const {
  std::map<double, double> cumulative;  // by edge; several engines add up
  for (const Sample& sample : samples_) {
    const auto le = sample.labels.find("le");
    double edge = 0;
    if (sample.name != name + "_bucket" || le == sample.labels.end()) continue;
    if (ParseNumber(le->second, &edge)) cumulative[edge] += sample.value;
  }
  Histogram histogram;
  double below = 0;
  for (const auto& [edge, count] : cumulative) {
    histogram.edges.push_back(edge);
    histogram.counts.push_back(count - below);
    below = count;
  }
  return histogram;
}

std::string Snapshot::Label(const std::string& label) const {
  for (const Sample& sample : samples_)
    if (const auto found = sample.labels.find(label); found != sample.labels.end())
      return found->second;
  return "";
}

std::vector<std::string> Snapshot::LabelValues(const std::string& name,
                                               const std::string& label) const {
  std::vector<std::string> values;
  for (const Sample& sample : samples_) {
    const auto found = sample.labels.find(label);
    if (sample.name == name && found != sample.labels.end() &&
        std::find(values.begin(), values.end(), found->second) == values.end())
      values.push_back(found->second);
  }
  return values;
}

}  // namespace top
