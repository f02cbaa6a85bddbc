// Weights with the host's threads and memory, as opening and saving a model both want them.
#pragma once

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "src/base/thread_pool.h"
#include "src/engine/choose_backend.h"
#include "src/engine/loaded_model.h"
#include "src/model/model.h"

namespace llm {

// Calls `work` with threads as the options want them. Errors are its own and those of the hooks.
absl::Status WithLoadingThreads(const ModelOptions& options,
                                absl::FunctionRef<absl::Status(ThreadPool* pool)> work);

// RESOURCE_EXHAUSTED, with the numbers, where options.max_memory_bytes is less than a load takes.
absl::Status CheckLoadLimit(const ModelOptions& options, const LoadBytes& bytes);

// For the backend's kernels, on its device or, without one, in host memory. `allocator` outlives
// the model; `beside` is that of WeightsOptions. Errors are those of CheckLoadLimit, LoadModel and
// the hooks.
absl::StatusOr<std::unique_ptr<Model>> LoadModelWith(const ModelOptions& options,
                                                     const Backend& backend,
                                                     const WeightSource& source,
                                                     Allocator* allocator, LoadProgress progress,
                                                     std::function<absl::Status()> beside = {});

// Asks options.progress; CANCELLED, naming `what`, when it says so.
absl::Status ReportProgress(const ModelOptions& options, absl::string_view what,
                            uint64_t done_bytes, uint64_t total_bytes);

}  // namespace llm
