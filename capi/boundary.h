// The boundary between C and C++: statuses become codes, exceptions become statuses, and the last
// error is kept per thread.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inlay/llm.h"

namespace llm {

// Keeps the message for llm_last_error of this thread, cut to its buffer. Never allocates.
llm_status RecordError(absl::StatusCode code, absl::string_view message) noexcept;

// Runs `body`, a function that returns absl::Status, and lets nothing out but a code.
template <typename Body>
llm_status Boundary(Body&& body) noexcept {
  try {
    const absl::Status status = body();
    return status.ok() ? LLM_OK : RecordError(status.code(), status.message());
  } catch (const std::bad_alloc&) {
    return RecordError(absl::StatusCode::kResourceExhausted, "out of memory");
  } catch (const std::length_error&) {
    return RecordError(absl::StatusCode::kResourceExhausted, "a size beyond what memory can hold");
  } catch (const std::exception& error) {
    return RecordError(absl::StatusCode::kInternal, error.what());
  } catch (...) {
    return RecordError(absl::StatusCode::kInternal, "an unknown exception");
  }
}

// INVALID_ARGUMENT naming the argument.
absl::Status NullArgument(absl::string_view name);
#define LLM_RETURN_IF_NULL(argument) \
  if ((argument) == nullptr) return ::llm::NullArgument(#argument)

}  // namespace llm
