// The command line of llm-eval.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/open.h"

namespace eval {

// Weights of a table: the model as given, or what `--weights` changes of it.
struct WeightsFlags {
  std::string name;  // the change as given; empty: the model as given
  tools::OpenFlags open;
};

struct Flags {
  tools::OpenFlags open;     // the one configuration, or the base of --against
  tools::OpenFlags against;  // --against
  bool compare = false;

  bool table = false;                 // --weights or --kv-dtypes: a row for each pair
  tools::OpenFlags base;              // what the rows are compared with
  std::vector<WeightsFlags> weights;  // the first is the model as given
  std::vector<std::string> kv_dtypes;
  std::string choices_path, markdown_path;
  unsigned length = 0;  // of a sequence, for how many fit; 0: the context
  uint64_t memory_bytes = 0;
  bool no_speed = false;

  std::string text_path, ids_path, json_path;
  unsigned context = 512, windows = 0;
};

// Exits as FlagTable::Parse does.
Flags ParseFlags(int argc, char** argv);

}  // namespace eval
