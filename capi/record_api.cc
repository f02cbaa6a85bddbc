// llm_step_records_read and llm_request_records_read.
#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "capi/boundary.h"
#include "capi/handles.h"
#include "inlay/llm.h"
#include "src/base/status_macros.h"
#include "src/engine/step_log.h"

namespace llm {
namespace {

constexpr size_t kFirstStepBytes = 160;  // of ABI 1.0: no caller can know less
constexpr size_t kFirstRequestBytes = 40;

absl::Status CheckRecordSize(size_t record_size, size_t smallest, size_t capacity) {
  if (capacity == 0) return absl::InvalidArgumentError("capacity: 0");
  if (record_size >= smallest && record_size <= (1 << 16) && record_size % alignof(uint64_t) == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("record_size: ", record_size, " is not the size of a record"));
}

// Our records are laid out as the caller's.
template <typename Record>
size_t ReadRing(const RecordRing<Record>& ring, uint64_t* cursor, void* records, size_t record_size,
                size_t capacity) {
  char* slot = static_cast<char*>(records);
  return ring.Read(cursor, capacity, [&](const Record& record) {
    const size_t known = std::min(record_size, sizeof(record));
    std::memcpy(slot, &record, known);
    std::memset(slot + known, 0, record_size - known);  // a newer caller's, unknown to us
    slot += record_size;
  });
}

}  // namespace
}  // namespace llm

extern "C" llm_status llm_step_records_read(const llm_engine* engine, uint64_t* cursor,
                                            llm_step_record* records, size_t record_size,
                                            size_t capacity, size_t* count) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(cursor);
    LLM_RETURN_IF_NULL(records);
    LLM_RETURN_IF_NULL(count);
    LLM_RETURN_IF_ERROR(llm::CheckRecordSize(record_size, llm::kFirstStepBytes, capacity));
    *count = llm::ReadRing(engine->engine->log().steps(), cursor, records, record_size, capacity);
    return absl::OkStatus();
  });
}

extern "C" llm_status llm_request_records_read(const llm_engine* engine, uint64_t* cursor,
                                               llm_request_record* records, size_t record_size,
                                               size_t capacity, size_t* count) {
  return llm::Boundary([&]() -> absl::Status {
    LLM_RETURN_IF_NULL(engine);
    LLM_RETURN_IF_NULL(cursor);
    LLM_RETURN_IF_NULL(records);
    LLM_RETURN_IF_NULL(count);
    LLM_RETURN_IF_ERROR(llm::CheckRecordSize(record_size, llm::kFirstRequestBytes, capacity));
    *count =
        llm::ReadRing(engine->engine->log().requests(), cursor, records, record_size, capacity);
    return absl::OkStatus();
  });
}
