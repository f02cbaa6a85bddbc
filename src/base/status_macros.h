// Early return for absl::Status and absl::StatusOr (Debian's Abseil has no such macros).
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define LLM_STATUS_CONCAT_INNER(a, b) a##b
#define LLM_STATUS_CONCAT(a, b) LLM_STATUS_CONCAT_INNER(a, b)

// Returns the status of `expr` from the enclosing function unless it is OK.
#define LLM_RETURN_IF_ERROR(expr)                                     \
  do {                                                                \
    if (absl::Status status_ = (expr); !status_.ok()) return status_; \
  } while (false)

// Evaluates `expr` (a StatusOr), returns its status on failure, else assigns its value to `lhs`.
#define LLM_ASSIGN_OR_RETURN(lhs, expr) \
  LLM_ASSIGN_OR_RETURN_IMPL(LLM_STATUS_CONCAT(status_or_, __LINE__), lhs, expr)
#define LLM_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                              \
  if (!var.ok()) return std::move(var).status();  \
  lhs = std::move(var).value()
