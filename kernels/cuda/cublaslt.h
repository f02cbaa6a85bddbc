// Matrix products by cuBLASLt, an algorithm chosen once for each shape.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cublaslt_functions.h"

namespace llm {

// Of both operands. Sums are f32, those of kInt8 s32.
enum class DenseType : int32_t { kBF16, kF16, kF8E4M3, kInt8 };

// out = activations x weight^T + bias.
struct DenseProduct {
  DenseType type = DenseType::kBF16;
  int64_t rows = 0;
  int64_t outputs = 0;
  int64_t cols = 0;
  const void* activations = nullptr;  // [rows, cols]
  const void* weight = nullptr;       // [outputs, cols]
  const float* bias = nullptr;        // [outputs] or null; REQUIRES: kBF16 or kF16
  void* out = nullptr;                // [rows, outputs] of f32 or s32
  int64_t out_stride = 0;             // elements
};

// Used by one thread, with its device as the current one. The order of a sum is the algorithm's,
// which is chosen by the number of rows.
class CublasLt {
 public:
  // `workspace` is the device's memory, outlives this, and is used by one stream alone. UNAVAILABLE
  // where the library is not here, or not for this driver; otherwise what it says.
  static absl::StatusOr<std::unique_ptr<CublasLt>> Create(void* workspace, size_t bytes);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // Whether the library has an algorithm for products like this one, pointers' alignment included;
  // what they point to is not read. After an error that is false for some calls of the shape.
  bool Supports(const DenseProduct& product);
  // Puts the product on the stream. False where the library refuses it, and will not be asked again
  // for this shape, or where a call fails, and will be later: others have to write all of `out`.
  bool Multiply(const DenseProduct& product, cudaStream_t stream);

  // Shapes that the library has no algorithm for, and calls of it that failed.
  int64_t num_refusals() const { return num_refusals_; }
  int64_t num_errors() const { return num_errors_; }
  // What there is to say about both since the last call: each shape's refusal, and its first error,
  // once.
  std::vector<std::string> TakeNotices() { return std::exchange(notices_, {}); }

 private:
  template <typename Handle>
  using Owner = std::unique_ptr<std::remove_pointer_t<Handle>, cublasStatus_t (*)(Handle)>;
  // Rows rounded up to a power of two.
  using Key = std::tuple<DenseType, int64_t, int64_t, int64_t, int64_t, bool>;
  struct Plan;

  CublasLt(const CublasLtFunctions& functions, void* workspace, size_t bytes);
  absl::Status Check(const char* what, cublasStatus_t status) const;
  template <typename Value>
  absl::Status SetMatmul(const Plan& plan, cublasLtMatmulDescAttributes_t attribute,
                         const Value& value) const;
  absl::StatusOr<Owner<cublasLtMatrixLayout_t>> MakeLayout(cudaDataType type, int64_t rows,
                                                           int64_t cols, int64_t stride) const;
  absl::StatusOr<Owner<cublasLtMatmulPreference_t>> MakePreference() const;
  Plan* PlanFor(const DenseProduct& product);  // null: not by the library, or not now
  absl::Status Describe(const DenseProduct& product, int64_t rows, Plan* plan) const;
  absl::Status ChooseAlgorithm(const DenseProduct& product, Plan* plan);
  absl::Status Run(const Plan& plan, const DenseProduct& product, cudaStream_t stream,
                   cublasStatus_t* status) const;
  void Refuse(const DenseProduct& product, const absl::Status& why, Plan* plan);
  void Postpone(const DenseProduct& product, const absl::Status& error, Plan* plan);
  void AddNotice(const DenseProduct& product, const absl::Status& why, const char* end);
  absl::Status SetRows(const Plan& plan, int64_t rows) const;

  const CublasLtFunctions functions_;
  void* const workspace_;
  const size_t workspace_bytes_;
  cublasLtHandle_t handle_ = nullptr;
  std::map<Key, std::unique_ptr<Plan>> plans_;
  int64_t num_refusals_ = 0;
  int64_t num_errors_ = 0;
  size_t num_notices_ = 0;
  std::vector<std::string> notices_;
};

}  // namespace llm
