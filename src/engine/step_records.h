// What the step ring and the event ring hold. Laid out as llm_step_record and llm_request_record
// (capi/abi_layout.cc asserts it), where each field is explained.
#pragma once

#include <cstdint>

namespace llm {

struct StepRecord {
  uint64_t index = 0;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  int64_t forward_ns = 0;
  int64_t host_ns = 0;
  uint32_t failed = 0;
  uint32_t preemptions = 0;
  uint32_t prefill_sequences = 0;
  uint32_t decode_sequences = 0;
  uint32_t prefill_tokens = 0;
  uint32_t generated_tokens = 0;
  uint64_t prefill_tokens_squared = 0;
  uint64_t prefill_context_tokens = 0;
  uint64_t decode_context_tokens = 0;
  uint64_t decode_context_tokens_squared = 0;
  uint32_t waiting_prefill_sequences = 0;
  uint32_t waiting_decode_sequences = 0;
  uint64_t waiting_prefill_tokens = 0;
  uint64_t waiting_decode_tokens = 0;
  uint32_t free_blocks = 0;
  uint32_t held_blocks = 0;
  uint32_t cached_blocks = 0;
  uint32_t reserved = 0;
  uint64_t weight_bytes_read = 0;
  uint64_t kv_bytes_read = 0;
  uint64_t kv_bytes_written = 0;
};

// Numbered as LLM_RECORD_*.
enum class RecordKind : uint32_t {
  kEnqueued = 1,
  kRejected = 2,
  kAdmitted = 3,
  kCached = 4,
  kPrefillChunk = 5,
  kTokens = 6,
  kPreempted = 7,
  kPaused = 8,
  kResumed = 9,
  kFinished = 10,
  kStepFailed = 11,
};

struct RequestRecord {
  uint64_t index = 0;
  int64_t time_ns = 0;
  uint64_t id = 0;
  RecordKind kind = RecordKind::kEnqueued;
  uint32_t tokens = 0;
  int64_t detail = 0;
};

}  // namespace llm
