// llm_host to HostHooks.
#pragma once

#include "absl/status/status.h"
#include "inlay/llm.h"
#include "src/engine/host_hooks.h"

namespace llm {

// `given` may be NULL: no hooks.
absl::Status TranslateHost(const llm_host* given, HostHooks* hooks);

// Threads where the caller names no number: one a CPU that it names; 0: the default.
uint32_t ThreadsOfCpus(const HostHooks& hooks);

}  // namespace llm
