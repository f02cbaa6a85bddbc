// Layers that share block tables because they keep the same keys: all of them, or those inside one
// window.
#pragma once

#include <vector>

namespace llm {

struct KvGroupSpec {
  int window = 0;           // tokens that a query sees, itself included; 0: all
  std::vector<int> layers;  // model layer indices, ascending
};

}  // namespace llm
