// The threads live as long as the load.
#include "src/engine/load_weights.h"

#include "absl/strings/str_cat.h"
#include "kernels/kernel_table.h"
#include "src/base/affinity.h"
#include "src/base/status_macros.h"
#include "src/base/thread_pool.h"
#include "src/engine/system_limits.h"

namespace llm {
namespace {

absl::Status CheckFits(const ModelOptions& options, const Backend& backend,
                       const WeightSource& source, int num_threads) {
  // Without the device of its kernels a load stages otherwise than planned: the allocator has the
  // last word.
  const bool as_planned = backend.device != nullptr || backend.kernels->open_device == nullptr;
  if (options.max_memory_bytes == 0 || !as_planned) return absl::OkStatus();
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(source));
  LLM_ASSIGN_OR_RETURN(const LoadBytes bytes,
                       PlanLoad(source, config, *backend.kernels, num_threads));
  return CheckLoadLimit(options, bytes);
}

}  // namespace

absl::Status WithLoadingThreads(const ModelOptions& options,
                                absl::FunctionRef<absl::Status(ThreadPool* pool)> work) {
  LLM_RETURN_IF_ERROR(CheckCpus(options.host.cpu_ids));
  HookFault hook_fault;
  ThreadPoolOptions threads;
  threads.num_threads = options.num_threads;
  if (options.num_threads <= 0) {
    LLM_ASSIGN_OR_RETURN(threads.num_threads, UsableCores());
  }
  threads.cpu_ids = options.host.cpu_ids;
  threads.executor = options.host.executor;
  threads.fault = &hook_fault;
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<ThreadPool> pool, ThreadPool::Create(threads));
  LLM_RETURN_IF_ERROR(work(pool.get()));
  return hook_fault.status();
}

absl::Status CheckLoadLimit(const ModelOptions& options, const LoadBytes& bytes) {
  const uint64_t needed = uint64_t{bytes.weights} + bytes.staging;
  if (options.map_pack || options.max_memory_bytes == 0 || needed <= options.max_memory_bytes) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "max_memory_bytes: ", options.max_memory_bytes, " is less than the ", bytes.weights,
      " bytes of weights and ", bytes.staging, " of staging that loading the model needs"));
}

absl::StatusOr<std::unique_ptr<Model>> LoadModelWith(const ModelOptions& options,
                                                     const Backend& backend,
                                                     const WeightSource& source,
                                                     Allocator* allocator, LoadProgress progress,
                                                     std::function<absl::Status()> beside) {
  WeightsOptions weights;
  weights.kernels = backend.kernels;
  weights.device = backend.device;
  weights.allocator = allocator;
  weights.beside = std::move(beside);
  weights.map = options.map_pack;
  weights.verify = options.verify_pack;
  std::unique_ptr<Model> model;
  LLM_RETURN_IF_ERROR(WithLoadingThreads(options, [&](ThreadPool* pool) {
    weights.pool = pool;
    absl::Status fits = CheckFits(options, backend, source, pool->num_threads());
    if (!fits.ok()) return fits;
    LLM_ASSIGN_OR_RETURN(model, LoadModel(source, weights, progress));
    return absl::OkStatus();
  }));
  return model;
}

absl::Status ReportProgress(const ModelOptions& options, absl::string_view what,
                            uint64_t done_bytes, uint64_t total_bytes) {
  if (options.progress == nullptr) return absl::OkStatus();
  if (options.progress(options.progress_user_data, done_bytes, total_bytes) == 0) {
    return absl::OkStatus();
  }
  return absl::CancelledError(absl::StrCat(what, ": cancelled by the progress callback after ",
                                           done_bytes, " of ", total_bytes, " bytes"));
}

}  // namespace llm
