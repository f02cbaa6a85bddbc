// Lengths come from the file, in an order drawn once; times are drawn, so that any rate can be had.
#include "replay/trace.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "common/flags.h"

namespace replay {
namespace {

struct Lengths {
  double prompt = 0, output = 0;
};

std::vector<std::string> Split(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) {
    while (!field.empty() && field.back() == '\r') field.pop_back();
    fields.push_back(field);
  }
  return fields;
}

size_t Column(const std::vector<std::string>& header, const std::vector<std::string>& names,
              const std::string& path) {
  for (const std::string& name : names) {
    const auto at = std::find(header.begin(), header.end(), name);
    if (at != header.end()) return static_cast<size_t>(at - header.begin());
  }
  tools::Fail(path + ": no column " + names.front());
}

std::vector<Lengths> ReadLengths(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) tools::Fail(path + ": cannot be read");
  const std::vector<std::string> header = Split(line);
  const size_t prompt = Column(header, {"num_prefill_tokens", "ContextTokens"}, path);
  const size_t output = Column(header, {"num_decode_tokens", "GeneratedTokens"}, path);
  std::vector<Lengths> lengths;
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = Split(line);
    if (fields.size() <= std::max(prompt, output)) continue;
    lengths.push_back({std::atof(fields[prompt].c_str()), std::atof(fields[output].c_str())});
  }
  if (lengths.empty()) tools::Fail(path + ": no requests");
  return lengths;
}

uint32_t Cut(double tokens, unsigned most) {
  return static_cast<uint32_t>(std::clamp(tokens, 1.0, static_cast<double>(most)));
}

}  // namespace

uint64_t Random::Next() {  // SplitMix64 (Steele, Lea, Flood 2014)
  uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

double Random::Uniform() { return static_cast<double>((Next() >> 11) + 1) * 0x1p-53; }

double Random::Exponential(double mean) { return -mean * std::log(Uniform()); }

std::vector<TraceRequest> MakeTrace(const TraceOptions& options) {
  Random random(options.seed);
  std::vector<Lengths> lengths;
  if (!options.path.empty()) lengths = ReadLengths(options.path);
  const size_t count = options.requests != 0 ? options.requests : lengths.size();
  for (size_t i = lengths.size(); i > 1; --i) std::swap(lengths[i - 1], lengths[random.Next() % i]);
  std::vector<TraceRequest> trace(count);
  double arrival_s = 0;
  for (size_t i = 0; i < count; ++i) {
    const Lengths one = lengths.empty() ? Lengths{random.Exponential(options.mean_prompt),
                                                  random.Exponential(options.mean_output)}
                                        : lengths[i % lengths.size()];
    arrival_s += random.Exponential(1 / options.rate);
    trace[i] = {static_cast<int64_t>(arrival_s * 1e9),
                Cut(one.prompt / options.scale, options.most_prompt),
                Cut(one.output / options.scale, options.most_output)};
  }
  return trace;
}

}  // namespace replay
