// Counts what one rendering may use: steps, bytes of values, bytes of output, nesting.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "src/tokenizer/chat_template.h"
#include "src/tokenizer/jinja/stack_meter.h"

namespace llm::jinja {

// Everything is counted up and never given back (except depth), so that a limit also bounds the
// time that a template takes.
class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits) : limits_(limits) {}

  absl::Status Step(uint64_t count = 1);

  // Work that reads `bytes` of text costs a step for every 64 of them.
  absl::Status Scan(uint64_t bytes) { return Step(1 + bytes / 64); }

  // REQUIRES: called before the bytes are allocated.
  absl::Status ChargeBytes(uint64_t bytes);
  absl::Status ChargeOutput(uint64_t bytes);

  // The nesting that values (lists in lists) may have.
  uint32_t max_value_depth() const { return limits_.max_depth; }

 private:
  friend class DepthGuard;
  friend class CallGuard;

  ChatTemplateLimits limits_;
  uint64_t steps_ = 0;
  uint64_t value_bytes_ = 0;
  uint64_t output_bytes_ = 0;
  StackMeter stack_;
  uint32_t depth_ = 0;
  uint32_t calls_ = 0;
};

// One level of recursion of the interpreter while in scope. A call of a macro takes several levels
// (its blocks and expressions), so that twice the limit on calls keeps templates that recurse a few
// times well inside.
class DepthGuard {
 public:
  explicit DepthGuard(Budget& budget) : budget_(budget) { ++budget_.depth_; }
  ~DepthGuard() { --budget_.depth_; }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

  absl::Status status() const {
    const uint32_t max_depth = budget_.limits_.max_depth;
    const bool within = budget_.depth_ <= 2 * max_depth && budget_.stack_.Within(max_depth);
    return within ? absl::OkStatus() : TooDeep();
  }

 private:
  absl::Status TooDeep() const;

  Budget& budget_;
};

// One call of a macro or of a recursive loop while in scope.
class CallGuard {
 public:
  explicit CallGuard(Budget& budget) : budget_(budget) { ++budget_.calls_; }
  ~CallGuard() { --budget_.calls_; }
  CallGuard(const CallGuard&) = delete;
  CallGuard& operator=(const CallGuard&) = delete;

  absl::Status status() const;

 private:
  Budget& budget_;
};

}  // namespace llm::jinja
