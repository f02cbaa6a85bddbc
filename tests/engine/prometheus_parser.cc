// Line by line with regular expressions; then each family as a whole.
#include "tests/engine/prometheus_parser.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <regex>
#include <set>
#include <sstream>

namespace llm {
namespace {

double ParseValue(const std::string& text) {
  if (text == "+Inf") return std::numeric_limits<double>::infinity();
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  double value = NAN;
  in >> value;
  return in.eof() && !in.fail() ? value : NAN;
}

// `a="b",c="d"`, without a comma at the end. False when it is not that, or a name comes twice.
bool ParseLabels(const std::string& text, std::map<std::string, std::string>* labels) {
  static const std::regex one(
      "([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\\\n]|\\\\[\"\\\\n])*)\"(,|$)");
  auto begin = text.begin();
  std::smatch match;
  bool more = !text.empty();
  while (more) {
    if (!std::regex_search(begin, text.end(), match, one, std::regex_constants::match_continuous))
      return false;
    std::string value;
    const std::string raw = match[2];
    for (size_t i = 0; i < raw.size(); ++i) {
      const bool escaped = raw[i] == '\\';
      if (escaped) ++i;
      value += escaped && raw[i] == 'n' ? '\n' : raw[i];
    }
    if (!labels->emplace(match[1], value).second) return false;
    more = match[3] == ",";
    begin = match[0].second;
  }
  return begin == text.end();
}

// The family that a sample's name belongs to, given the family that is open.
bool BelongsTo(const std::string& sample, const std::string& family, const std::string& type) {
  if (type != "histogram") return sample == family;
  return sample == family + "_bucket" || sample == family + "_sum" || sample == family + "_count";
}

std::string CheckHistogram(const std::string& name, const PrometheusFamily& family) {
  double edge = -1;
  double last = -1;
  int sums = 0;
  int counts = 0;
  for (const PrometheusSample& sample : family.samples) {
    if (sample.name == name + "_sum") ++sums;
    if (sample.name == name + "_count") {
      ++counts;
      if (sample.value != last) return name + ": _count is not the last bucket";
    }
    if (sample.name != name + "_bucket") continue;
    const auto le = sample.labels.find("le");
    if (le == sample.labels.end()) return name + ": a bucket without le";
    if (!(ParseValue(le->second) > edge)) return name + ": le does not rise at " + le->second;
    if (sample.value < last) return name + ": buckets are not cumulative at " + le->second;
    edge = ParseValue(le->second);
    last = sample.value;
  }
  if (!std::isinf(edge)) return name + ": the last bucket is not +Inf";
  return sums == 1 && counts == 1 ? "" : name + ": not one _sum and one _count";
}

std::string CheckFamily(const std::string& name, const PrometheusFamily& family) {
  if (family.samples.empty()) return name + ": no samples";
  std::set<std::pair<std::string, std::map<std::string, std::string>>> seen;
  for (const PrometheusSample& sample : family.samples) {
    if (!seen.emplace(sample.name, sample.labels).second) return name + ": a sample comes twice";
    if (family.type == "counter" && sample.value < 0) return name + ": a negative counter";
  }
  const bool total = name.size() > 6 && name.substr(name.size() - 6) == "_total";
  if (family.type == "counter" && !total) return name + ": a counter that does not end in _total";
  if (family.type != "histogram") return "";
  std::map<std::map<std::string, std::string>, PrometheusFamily> series;  // by all labels but le
  for (const PrometheusSample& sample : family.samples) {
    std::map<std::string, std::string> labels = sample.labels;
    labels.erase("le");
    series[labels].samples.push_back(sample);
  }
  for (const auto& [labels, one] : series) {
    if (std::string wrong = CheckHistogram(name, one); !wrong.empty()) return wrong;
  }
  return "";
}

}  // namespace

PrometheusFamilies ParsePrometheus(const std::string& text) {
  static const std::regex help("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (\\S.*)");
  static const std::regex type("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|histogram)");
  static const std::regex line_of_sample("([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\\{(.*)\\})? (\\S+)");
  PrometheusFamilies out;
  if (text.empty() || text.back() != '\n') out.error = "the text does not end with a newline";
  std::string open;
  std::istringstream lines(text);
  for (std::string line; out.error.empty() && std::getline(lines, line);) {
    std::smatch match;
    PrometheusSample sample;
    if (std::regex_match(line, match, help)) {
      open = match[1];
      if (out.by_name.count(open) != 0) out.error = "family twice: " + line;
      out.by_name[open].help = match[2];
    } else if (std::regex_match(line, match, type)) {
      PrometheusFamily& family = out.by_name[open];
      if (match[1] != open || !family.type.empty() || !family.samples.empty())
        out.error = "type: " + line;
      family.type = match[2];
    } else if (std::regex_match(line, match, line_of_sample)) {
      sample.name = match[1];
      sample.value = ParseValue(match[3]);
      PrometheusFamily& family = out.by_name[open];
      if (!BelongsTo(sample.name, open, family.type)) out.error = "not of its family: " + line;
      if (!ParseLabels(match[2], &sample.labels)) out.error = "labels: " + line;
      if (std::isnan(sample.value)) out.error = "value: " + line;
      family.samples.push_back(sample);
    } else {
      out.error = "line: " + line;
    }
  }
  for (const auto& [name, family] : out.by_name) {
    if (out.error.empty()) out.error = CheckFamily(name, family);
  }
  return out;
}

double PrometheusFamilies::Value(const std::string& name,
                                 const std::map<std::string, std::string>& labels) const {
  std::vector<double> found;
  for (const auto& [family_name, family] : by_name) {
    for (const PrometheusSample& sample : family.samples) {
      bool same = sample.name == name;
      for (const auto& [label, value] : labels) {
        const auto at = sample.labels.find(label);
        same = same && at != sample.labels.end() && at->second == value;
      }
      if (same) found.push_back(sample.value);
    }
  }
  EXPECT_EQ(found.size(), 1u) << name;
  return found.empty() ? NAN : found[0];
}

}  // namespace llm
