// The names of the library say its major version; both have these functions alike. One that lacks
// a function (an older one under that name, or half of an installation) is as good as none.
#include "kernels/cuda/cublaslt_functions.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/dynamic_library.h"

namespace llm {
namespace {

constexpr const char* kNames[] = {"libcublasLt.so.13", "libcublasLt.so.12"};

class Finder {
 public:
  explicit Finder(void* library) : library_(library) {}

  template <typename Function>
  void Find(const char* symbol, Function* function) {
    *function = reinterpret_cast<Function>(FindSymbol(library_, symbol));
    if (*function == nullptr && missing_ == nullptr) missing_ = symbol;
  }
  const char* missing() const { return missing_; }

 private:
  void* const library_;
  const char* missing_ = nullptr;  // the first
};

absl::StatusOr<CublasLtFunctions> FindIn(const char* name) {
  void* library = OpenLibrary(name);
  if (library == nullptr) return absl::UnavailableError(absl::StrCat(name, " is not here"));
  Finder finder(library);
  CublasLtFunctions f;
  finder.Find("cublasLtCreate", &f.create);
  finder.Find("cublasLtDestroy", &f.destroy);
  finder.Find("cublasLtGetStatusString", &f.status_string);
  finder.Find("cublasLtMatmulDescCreate", &f.create_matmul);
  finder.Find("cublasLtMatmulDescDestroy", &f.destroy_matmul);
  finder.Find("cublasLtMatmulDescSetAttribute", &f.set_matmul);
  finder.Find("cublasLtMatrixLayoutCreate", &f.create_layout);
  finder.Find("cublasLtMatrixLayoutDestroy", &f.destroy_layout);
  finder.Find("cublasLtMatrixLayoutSetAttribute", &f.set_layout);
  finder.Find("cublasLtMatmulPreferenceCreate", &f.create_preference);
  finder.Find("cublasLtMatmulPreferenceDestroy", &f.destroy_preference);
  finder.Find("cublasLtMatmulPreferenceSetAttribute", &f.set_preference);
  finder.Find("cublasLtMatmulAlgoGetHeuristic", &f.find_algorithms);
  finder.Find("cublasLtMatmul", &f.matmul);
  if (finder.missing() == nullptr) return f;
  return absl::UnavailableError(absl::StrCat(name, " has no ", finder.missing()));
}

}  // namespace

absl::StatusOr<CublasLtFunctions> FindCublasLt() {
  std::string reasons;
  for (const char* name : kNames) {
    absl::StatusOr<CublasLtFunctions> functions = FindIn(name);
    if (functions.ok()) return functions;
    absl::StrAppend(&reasons, reasons.empty() ? "cuBLASLt: " : "; ", functions.status().message());
  }
  return absl::UnavailableError(reasons);
}

}  // namespace llm
