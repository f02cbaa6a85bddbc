// Version and names of statuses.
#include "inlay/llm.h"

extern "C" uint32_t llm_abi_version(void) { return LLM_ABI_MAJOR << 16 | LLM_ABI_MINOR; }

extern "C" const char* llm_status_name(llm_status status) {
  static constexpr const char* kNames[] = {"OK",
                                           "CANCELLED",
                                           "UNKNOWN",
                                           "INVALID_ARGUMENT",
                                           "DEADLINE_EXCEEDED",
                                           "NOT_FOUND",
                                           "ALREADY_EXISTS",
                                           "PERMISSION_DENIED",
                                           "RESOURCE_EXHAUSTED",
                                           "FAILED_PRECONDITION",
                                           "ABORTED",
                                           "OUT_OF_RANGE",
                                           "UNIMPLEMENTED",
                                           "INTERNAL",
                                           "UNAVAILABLE",
                                           "DATA_LOSS",
                                           "UNAUTHENTICATED"};
  constexpr llm_status kCount = sizeof(kNames) / sizeof(kNames[0]);
  return status >= 0 && status < kCount ? kNames[status] : "UNKNOWN_STATUS";
}
