// Reads the caller's hooks once; calls none of them.
#include "capi/translate_host.h"

#include "absl/strings/str_cat.h"
#include "capi/strings.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr size_t kMaxCpuIds = 1024;  // as many as there may be threads

}  // namespace

absl::Status TranslateHost(const llm_host* given, HostHooks* hooks) {
  if (given == nullptr) return absl::OkStatus();
  llm_host c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_host", given, &c));
  if (c.reserved != 0) return absl::UnimplementedError("host: reserved is not 0");
  if ((c.allocate == nullptr) != (c.deallocate == nullptr)) {
    return absl::InvalidArgumentError("host: allocate and deallocate go together, one is NULL");
  }
  LLM_RETURN_IF_ERROR(CheckArray("cpu_ids", c.cpu_ids, c.num_cpu_ids));
  if (c.num_cpu_ids > kMaxCpuIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("num_cpu_ids: ", c.num_cpu_ids, " exceeds ", kMaxCpuIds));
  }
  hooks->allocator.allocate = c.allocate;
  hooks->allocator.deallocate = c.deallocate;
  hooks->allocator.user_data = c.allocator_user_data;
  hooks->executor.run = c.run;
  hooks->executor.user_data = c.executor_user_data;
  hooks->clock = c.now_ns;
  hooks->clock_user_data = c.clock_user_data;
  hooks->cpu_ids.assign(c.cpu_ids, c.cpu_ids + c.num_cpu_ids);
  return absl::OkStatus();
}

uint32_t ThreadsOfCpus(const HostHooks& hooks) {
  return hooks.executor.run != nullptr ? 0 : static_cast<uint32_t>(hooks.cpu_ids.size());
}

}  // namespace llm
