// The kernel alone knows what a thread may run on (cpusets change while we run), so it is asked.
#include "src/base/affinity.h"

#include <pthread.h>
#include <sched.h>

#include "absl/strings/str_cat.h"
#include "src/base/library_thread.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

bool Pin(int32_t cpu_id, pthread_t thread) {
  if (cpu_id < 0 || cpu_id >= CPU_SETSIZE) return false;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<size_t>(cpu_id), &set);
  return pthread_setaffinity_np(thread, sizeof(set), &set) == 0;
}

absl::Status NoSuchCpu(int32_t cpu_id) {
  return absl::InvalidArgumentError(
      absl::StrCat("cpu_ids: CPU ", cpu_id, " does not exist or is not this process's to use"));
}

}  // namespace

absl::Status PinThread(int32_t cpu_id, std::thread* thread) {
  return Pin(cpu_id, thread->native_handle()) ? absl::OkStatus() : NoSuchCpu(cpu_id);
}

absl::Status CheckCpus(absl::Span<const int32_t> cpu_ids) {
  if (cpu_ids.empty()) return absl::OkStatus();
  size_t num_good = 0;
  std::thread probe;
  LLM_RETURN_IF_ERROR(StartThread(
      "cpu_ids",
      [&] {
        while (num_good < cpu_ids.size() && Pin(cpu_ids[num_good], pthread_self())) ++num_good;
      },
      &probe));
  probe.join();
  return num_good == cpu_ids.size() ? absl::OkStatus() : NoSuchCpu(cpu_ids[num_good]);
}

}  // namespace llm
