// NVTX ranges named after the words of the request path; nothing unless built with the CUDA
// toolkit.
#pragma once

namespace llm {

class NvtxRange {
 public:
  explicit NvtxRange(const char* /*name*/) {}
};

}  // namespace llm
