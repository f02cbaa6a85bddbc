// Libraries whose functions are cublaslt_api.cc's. A handle is the address of the name.
#include "tests/cuda_on_cpu/libraries.h"

#include <cublasLt.h>

#include <map>

#include "kernels/cuda/dynamic_library.h"

namespace llm {
namespace cuda_on_cpu {

Libraries& Libraries::Get() {
  static Libraries libraries;
  return libraries;
}

}  // namespace cuda_on_cpu

using cuda_on_cpu::Libraries;

void* OpenLibrary(const char* name) {
  Libraries& libraries = Libraries::Get();
  if (libraries.name == name) return &libraries.name;
  return libraries.other_name == name ? &libraries.other_name : nullptr;
}

void* FindSymbol(void* library, const char* symbol) {
  const bool whole = library == &Libraries::Get().other_name;
  const std::set<std::string> missing =
      whole ? std::set<std::string>() : Libraries::Get().missing_symbols;
  const std::map<std::string, void*> symbols = {
      {"cublasLtCreate", reinterpret_cast<void*>(&cublasLtCreate)},
      {"cublasLtDestroy", reinterpret_cast<void*>(&cublasLtDestroy)},
      {"cublasLtGetStatusString", reinterpret_cast<void*>(&cublasLtGetStatusString)},
      {"cublasLtMatmulDescCreate", reinterpret_cast<void*>(&cublasLtMatmulDescCreate)},
      {"cublasLtMatmulDescDestroy", reinterpret_cast<void*>(&cublasLtMatmulDescDestroy)},
      {"cublasLtMatmulDescSetAttribute", reinterpret_cast<void*>(&cublasLtMatmulDescSetAttribute)},
      {"cublasLtMatrixLayoutCreate", reinterpret_cast<void*>(&cublasLtMatrixLayoutCreate)},
      {"cublasLtMatrixLayoutDestroy", reinterpret_cast<void*>(&cublasLtMatrixLayoutDestroy)},
      {"cublasLtMatrixLayoutSetAttribute",
       reinterpret_cast<void*>(&cublasLtMatrixLayoutSetAttribute)},
      {"cublasLtMatmulPreferenceCreate", reinterpret_cast<void*>(&cublasLtMatmulPreferenceCreate)},
      {"cublasLtMatmulPreferenceDestroy",
       reinterpret_cast<void*>(&cublasLtMatmulPreferenceDestroy)},
      {"cublasLtMatmulPreferenceSetAttribute",
       reinterpret_cast<void*>(&cublasLtMatmulPreferenceSetAttribute)},
      {"cublasLtMatmulAlgoGetHeuristic", reinterpret_cast<void*>(&cublasLtMatmulAlgoGetHeuristic)},
      {"cublasLtMatmul", reinterpret_cast<void*>(&cublasLtMatmul)}};
  const auto found = symbols.find(symbol);
  return found == symbols.end() || missing.count(symbol) > 0 ? nullptr : found->second;
}

}  // namespace llm
