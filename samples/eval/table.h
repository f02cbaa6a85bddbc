// The table of weights x KV dtypes: speed and memory beside quality.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "eval/compare.h"
#include "eval/configuration.h"

namespace eval {

struct TableRow {
  std::string weights, kv_dtype, configuration;
  double bytes_per_weight = 0;  // in memory
  uint64_t weights_bytes = 0;   // likewise
  uint64_t sequences = 0;       // that fit
  double sequence_gain = 0;     // over those that fit with KV f16
  Speed speed;
  Perplexity perplexity;
  Divergence divergence;         // from the base; of the base itself empty
  NllDifference nll_difference;  // likewise
  double accuracy = 0;           // NaN: no questions
  double picks_alike = 0;        // share of questions answered as the base does
};

struct Table {
  size_t windows = 0, context = 0;
  uint64_t memory_bytes = 0, length = 0;  // that sequences_fit is for
  size_t questions = 0;
  bool has_speed = false;
  TableRow base;
  std::vector<TableRow> rows;
};

std::string TableMarkdown(const Table& table);
std::string TableJson(const Table& table);

// JSON has no NaN: null.
std::string JsonNumber(double value);
// Members of an object, without its braces.
std::string PerplexityJson(const Perplexity& perplexity);

}  // namespace eval
