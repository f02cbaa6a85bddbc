// cuBLASLt counts columns first: what is row by row here is its transpose there, so that its rows
// are outputs and its columns our rows.
#include "kernels/cuda/cublaslt.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cuda_status.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// Of every operand and each of its rows: what the fast algorithms copy at once.
constexpr uint32_t kAlignment = 16;

struct Types {
  cudaDataType operand;
  cudaDataType sum;
  cublasComputeType_t compute;
  int64_t operand_bytes;
};

Types TypesOf(DenseType type) {
  switch (type) {
    case DenseType::kBF16:
      return {CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
    case DenseType::kF16:
      return {CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 2};
    case DenseType::kF8E4M3:
      return {CUDA_R_8F_E4M3, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1};
    case DenseType::kInt8:
      return {CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 1};
  }
  return {};
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kAlignment == 0;
}

bool IsAligned(const DenseProduct& p) {
  return IsAligned(p.activations) && IsAligned(p.weight) && IsAligned(p.bias) && IsAligned(p.out) &&
         p.cols * TypesOf(p.type).operand_bytes % kAlignment == 0 &&
         p.out_stride * int64_t{sizeof(float)} % kAlignment == 0;
}

int64_t RowBucket(int64_t rows) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows)));
}

// The library cannot do it, or not on this device: no fault of either.
bool IsRefusal(cublasStatus_t status) {
  return status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH;
}

// Calls that a shape is left to own kernels for after an error, twice as many after each: a step's
// layers at first. A library that is broken for good then costs next to nothing.
constexpr int64_t kFirstWait = 32;
constexpr int64_t kLongestWait = int64_t{1} << 16;

constexpr size_t kMaxNotices = 32;  // a model has some seven shapes, each in a few sizes of rows

const char* NameOf(DenseType type) {
  switch (type) {
    case DenseType::kBF16:
      return "bf16";
    case DenseType::kF16:
      return "f16";
    case DenseType::kF8E4M3:
      return "e4m3";
    case DenseType::kInt8:
      return "int8";
  }
  return "";
}

}  // namespace

struct CublasLt::Plan {
  explicit Plan(const CublasLtFunctions& f)
      : matmul(nullptr, f.destroy_matmul),
        weight(nullptr, f.destroy_layout),
        activations(nullptr, f.destroy_layout),
        out(nullptr, f.destroy_layout) {}

  Owner<cublasLtMatmulDesc_t> matmul;
  Owner<cublasLtMatrixLayout_t> weight;
  Owner<cublasLtMatrixLayout_t> activations;
  Owner<cublasLtMatrixLayout_t> out;
  cublasLtMatmulAlgo_t algorithm = {};
  enum class Choice { kOpen, kAlgorithm, kNone } choice = Choice::kOpen;
  int64_t calls_to_wait = 0;  // before the choice is made (again)
  int64_t next_wait = kFirstWait;
};

absl::StatusOr<std::unique_ptr<CublasLt>> CublasLt::Create(void* workspace, size_t bytes) {
  LLM_ASSIGN_OR_RETURN(const CublasLtFunctions functions, FindCublasLt());
  std::unique_ptr<CublasLt> library(new CublasLt(functions, workspace, bytes));
  const cublasStatus_t status = functions.create(&library->handle_);
  const absl::Status created = library->Check("handle", status);
  // One that is too new for the driver, or too old for the device, is as good as none.
  if (status == CUBLAS_STATUS_NOT_INITIALIZED || IsRefusal(status)) {
    return absl::UnavailableError(created.message());
  }
  LLM_RETURN_IF_ERROR(created);
  return library;
}

CublasLt::CublasLt(const CublasLtFunctions& functions, void* workspace, size_t bytes)
    : functions_(functions), workspace_(workspace), workspace_bytes_(bytes) {}

CublasLt::~CublasLt() {
  plans_.clear();
  if (handle_ != nullptr) (void)functions_.destroy(handle_);
}

absl::Status CublasLt::Check(const char* what, cublasStatus_t status) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  (void)cudaGetLastError();  // told here
  const std::string message =
      absl::StrCat("cuBLASLt: ", what, ": ", functions_.status_string(status));
  return status == CUBLAS_STATUS_ALLOC_FAILED ? absl::ResourceExhaustedError(message)
                                              : absl::InternalError(message);
}

bool CublasLt::Supports(const DenseProduct& product) {
  return IsAligned(product) && PlanFor(product) != nullptr;
}

bool CublasLt::Multiply(const DenseProduct& product, cudaStream_t stream) {
  if (!IsAligned(product)) return false;
  Plan* plan = PlanFor(product);
  if (plan == nullptr) return false;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  const absl::Status error = Run(*plan, product, stream, &status);
  if (error.ok()) {
    plan->next_wait = kFirstWait;
    return true;
  }
  IsRefusal(status) ? Refuse(product, error, plan) : Postpone(product, error, plan);
  return false;
}

absl::Status CublasLt::Run(const Plan& plan, const DenseProduct& p, cudaStream_t stream,
                           cublasStatus_t* status) const {
  LLM_RETURN_IF_ERROR(SetRows(plan, p.rows));
  if (p.bias != nullptr) {
    LLM_RETURN_IF_ERROR(SetMatmul(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias));
  }
  const float one = 1, zero = 0;
  const int32_t integer_one = 1, integer_zero = 0;
  const bool integers = p.type == DenseType::kInt8;
  const void* alpha = integers ? static_cast<const void*>(&integer_one) : &one;
  const void* beta = integers ? static_cast<const void*>(&integer_zero) : &zero;
  *status =
      functions_.matmul(handle_, plan.matmul.get(), alpha, p.weight, plan.weight.get(),
                        p.activations, plan.activations.get(), beta, p.out, plan.out.get(), p.out,
                        plan.out.get(), &plan.algorithm, workspace_, workspace_bytes_, stream);
  return Check("product", *status);
}

CublasLt::Plan* CublasLt::PlanFor(const DenseProduct& p) {
  const int64_t rows = RowBucket(p.rows);
  const Key key = {p.type, rows, p.outputs, p.cols, p.out_stride, p.bias != nullptr};
  std::unique_ptr<Plan>& plan = plans_[key];
  if (plan == nullptr) plan = std::make_unique<Plan>(functions_);
  if (plan->choice == Plan::Choice::kOpen) {
    if (plan->calls_to_wait > 0) {
      --plan->calls_to_wait;
      return nullptr;
    }
    absl::Status error = Describe(p, rows, plan.get());
    if (error.ok()) error = ChooseAlgorithm(p, plan.get());
    if (!error.ok()) Postpone(p, error, plan.get());
  }
  return plan->choice == Plan::Choice::kAlgorithm ? plan.get() : nullptr;
}

void CublasLt::Refuse(const DenseProduct& product, const absl::Status& why, Plan* plan) {
  plan->choice = Plan::Choice::kNone;
  ++num_refusals_;
  AddNotice(product, why, "; own kernels do it");
}

void CublasLt::Postpone(const DenseProduct& product, const absl::Status& error, Plan* plan) {
  plan->choice = Plan::Choice::kOpen;
  plan->calls_to_wait = plan->next_wait;
  if (plan->next_wait == kFirstWait) {  // what goes on is told once
    AddNotice(product, error, "; own kernels do it meanwhile");
  }
  plan->next_wait = std::min(2 * plan->next_wait, kLongestWait);
  ++num_errors_;
}

void CublasLt::AddNotice(const DenseProduct& p, const absl::Status& why, const char* end) {
  if (num_notices_ >= kMaxNotices) return;
  ++num_notices_;
  notices_.push_back(absl::StrCat(why.message(), ", of ", NameOf(p.type), ", up to ",
                                  RowBucket(p.rows), " rows, ", p.outputs, " outputs of ", p.cols,
                                  " columns", end));
}

absl::Status CublasLt::Describe(const DenseProduct& p, int64_t rows, Plan* plan) const {
  const Types types = TypesOf(p.type);
  cublasLtMatmulDesc_t matmul = nullptr;
  LLM_RETURN_IF_ERROR(
      Check("product", functions_.create_matmul(&matmul, types.compute, types.sum)));
  plan->matmul.reset(matmul);
  LLM_RETURN_IF_ERROR(
      SetMatmul(*plan, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<int32_t>(CUBLAS_OP_T)));
  if (p.bias != nullptr) {
    LLM_RETURN_IF_ERROR(SetMatmul(*plan, CUBLASLT_MATMUL_DESC_EPILOGUE,
                                  static_cast<uint32_t>(CUBLASLT_EPILOGUE_BIAS)));
    LLM_RETURN_IF_ERROR(
        SetMatmul(*plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, static_cast<int32_t>(CUDA_R_32F)));
    // The choice of an algorithm looks at its alignment.
    LLM_RETURN_IF_ERROR(SetMatmul(*plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias));
  }
  LLM_ASSIGN_OR_RETURN(plan->weight, MakeLayout(types.operand, p.cols, p.outputs, p.cols));
  LLM_ASSIGN_OR_RETURN(plan->activations, MakeLayout(types.operand, p.cols, rows, p.cols));
  LLM_ASSIGN_OR_RETURN(plan->out, MakeLayout(types.sum, p.outputs, rows, p.out_stride));
  return absl::OkStatus();
}

template <typename Value>
absl::Status CublasLt::SetMatmul(const Plan& plan, cublasLtMatmulDescAttributes_t attribute,
                                 const Value& value) const {
  return Check("product",
               functions_.set_matmul(plan.matmul.get(), attribute, &value, sizeof(value)));
}

absl::StatusOr<CublasLt::Owner<cublasLtMatrixLayout_t>> CublasLt::MakeLayout(cudaDataType type,
                                                                             int64_t rows,
                                                                             int64_t cols,
                                                                             int64_t stride) const {
  cublasLtMatrixLayout_t layout = nullptr;
  LLM_RETURN_IF_ERROR(
      Check("layout", functions_.create_layout(&layout, type, static_cast<uint64_t>(rows),
                                               static_cast<uint64_t>(cols), stride)));
  return Owner<cublasLtMatrixLayout_t>(layout, functions_.destroy_layout);
}

absl::StatusOr<CublasLt::Owner<cublasLtMatmulPreference_t>> CublasLt::MakePreference() const {
  cublasLtMatmulPreference_t created = nullptr;
  LLM_RETURN_IF_ERROR(Check("preference", functions_.create_preference(&created)));
  Owner<cublasLtMatmulPreference_t> preference(created, functions_.destroy_preference);
  const uint64_t bytes = workspace_bytes_;
  LLM_RETURN_IF_ERROR(Check(
      "preference", functions_.set_preference(created, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                              &bytes, sizeof(bytes))));
  for (const cublasLtMatmulPreferenceAttributes_t operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    LLM_RETURN_IF_ERROR(Check("preference", functions_.set_preference(created, operand, &kAlignment,
                                                                      sizeof(kAlignment))));
  }
  return preference;
}

absl::Status CublasLt::ChooseAlgorithm(const DenseProduct& p, Plan* plan) {
  LLM_ASSIGN_OR_RETURN(const Owner<cublasLtMatmulPreference_t> preference, MakePreference());
  cublasLtMatmulHeuristicResult_t found = {};
  int count = 0;
  const cublasStatus_t status = functions_.find_algorithms(
      handle_, plan->matmul.get(), plan->weight.get(), plan->activations.get(), plan->out.get(),
      plan->out.get(), preference.get(), 1, &found, &count);
  const absl::Status error = Check("algorithm", status);
  const bool none =
      count == 0 || found.state != CUBLAS_STATUS_SUCCESS || found.workspaceSize > workspace_bytes_;
  if (IsRefusal(status) || (error.ok() && none)) {
    Refuse(p, error.ok() ? absl::NotFoundError("cuBLASLt: no algorithm") : error, plan);
    return absl::OkStatus();
  }
  LLM_RETURN_IF_ERROR(error);
  plan->algorithm = found.algo;
  plan->choice = Plan::Choice::kAlgorithm;
  return absl::OkStatus();
}

absl::Status CublasLt::SetRows(const Plan& plan, int64_t rows) const {
  const auto cols = static_cast<uint64_t>(rows);
  for (const cublasLtMatrixLayout_t layout : {plan.activations.get(), plan.out.get()}) {
    LLM_RETURN_IF_ERROR(Check(
        "layout", functions_.set_layout(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &cols, sizeof(cols))));
  }
  return absl::OkStatus();
}

}  // namespace llm
