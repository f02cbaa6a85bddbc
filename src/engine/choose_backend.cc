// The driver is opened only where a GPU may be used.
#include "src/engine/choose_backend.h"

#include "absl/strings/str_cat.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status Prefixed(const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("device: ", status.message()));
}

absl::StatusOr<Backend> OpenCuda(uint32_t index) {
  const absl::StatusOr<const KernelTable*> kernels = FindCudaKernels();
  if (!kernels.ok()) return Prefixed(kernels.status());
  absl::StatusOr<std::shared_ptr<Device>> device = (*kernels)->open_device(index);
  if (!device.ok()) return Prefixed(device.status());
  return Backend{*kernels, *std::move(device)};
}

absl::StatusOr<Backend> UseCpu(const std::string& kernels) {
  Backend backend;
  LLM_ASSIGN_OR_RETURN(backend.kernels, FindKernels(kernels));
  return backend;
}

}  // namespace

absl::StatusOr<Backend> ChooseBackend(const ModelOptions& options, const WeightSource& source,
                                      const ModelConfig& config) {
  const bool names_cuda = options.kernels == "cuda";
  if (options.device == DeviceChoice::kCuda && !names_cuda && !options.kernels.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("kernels: \"", options.kernels, "\" are not those of a CUDA device"));
  }
  if (options.device == DeviceChoice::kCuda ||
      (options.device == DeviceChoice::kDefault && names_cuda)) {
    return OpenCuda(options.device_index);
  }
  if (options.device == DeviceChoice::kCpu || !options.kernels.empty() || options.simulated ||
      options.header_only || options.map_pack) {
    return UseCpu(options.kernels);
  }
  absl::StatusOr<Backend> cuda = OpenCuda(options.device_index);
  if (absl::IsInvalidArgument(cuda.status())) return cuda;  // a GPU by its number
  absl::Status runs = cuda.status();
  if (cuda.ok()) runs = PlanLoad(source, config, *cuda->kernels, 1).status();
  // A pack is for one backend. What else is wrong with the file is the open's to say.
  const bool for_cpu = absl::IsUnimplemented(runs) || absl::IsFailedPrecondition(runs);
  if (cuda.ok() && !for_cpu) return cuda;
  if (!absl::IsUnavailable(runs) && !absl::IsFailedPrecondition(runs)) {
    options.logger.Warning("the CPU computes, not the GPU: ", runs.message());
  }
  return UseCpu("");
}

absl::Status CheckDeviceRoom(const Device& device, uint64_t bytes, absl::string_view what) {
  LLM_ASSIGN_OR_RETURN(const size_t free_bytes, device.FreeBytes());
  if (bytes <= free_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(device.name(), ": ", free_bytes, " bytes are free, ", what, " take ", bytes));
}

}  // namespace llm
