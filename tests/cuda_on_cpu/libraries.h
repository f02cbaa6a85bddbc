// The libraries that the emulated machine has, in place of kernels/cuda/dynamic_library.cc, and
// what its cuBLASLt was asked for.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace llm::cuda_on_cpu {

class Libraries {
 public:
  static Libraries& Get();

  // libcublasLt.so.13 with all of its functions, which refuses nothing that it can do.
  void Reset() { *this = Libraries(); }

  std::string name = "libcublasLt.so.13";  // of the one that is here
  std::set<std::string> missing_symbols;   // of that one
  std::string other_name;                  // of a second one, which lacks nothing; empty: none
  enum class Order { kAscending, kHalves };
  Order order = Order::kAscending;  // of additions, which is the library's secret
  bool suits_driver = true;
  bool finds_algorithms = true;
  bool refuses_products = false;  // which it found algorithms for
  int32_t choice_error = 0;       // a cublasStatus_t: what the choice of an algorithm answers
  int32_t product_error = 0;      // likewise, and then nothing is put on the stream
  int64_t num_choices = 0;        // calls that chose an algorithm
  int64_t num_products = 0;       // that were put on a stream
};

}  // namespace llm::cuda_on_cpu
