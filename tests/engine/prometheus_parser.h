// A strict reader of Prometheus' text format, version 0.0.4: it refuses what a lenient one would
// let pass.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace llm {

struct PrometheusSample {
  std::string name;
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct PrometheusFamily {
  std::string help;
  std::string type;
  std::vector<PrometheusSample> samples;
};

struct PrometheusFamilies {
  std::map<std::string, PrometheusFamily> by_name;
  std::string error;  // of the first line that is wrong; empty when all is well

  // The value of the one sample with this name that has `labels` among its own; fails the test when
  // there is not one.
  double Value(const std::string& name,
               const std::map<std::string, std::string>& labels = {}) const;
};

PrometheusFamilies ParsePrometheus(const std::string& text);

}  // namespace llm
