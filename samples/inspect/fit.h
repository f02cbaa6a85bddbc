// What llm_plan predicts, and how many sequences fit by it.
#pragma once

#include <inlay/llm.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/open.h"

namespace inspect {

llm_memory_plan Plan(const tools::OpenFlags& flags, const llm_engine_options& options);
// What stays allocated, filled caches included: weights, tokenizer, KV, workspace.
uint64_t ResidentBytes(const llm_memory_plan& plan);

std::string PlanText(const llm_memory_plan& plan);
std::string PlanJson(const llm_memory_plan& plan);

struct Fit {
  std::string kv_dtype;
  uint64_t sequences;    // 0: not even one
  uint64_t kv_bytes;     // of so many
  uint64_t total_bytes;  // likewise
};

// What model and engine take so that `sequences` of `length` tokens run at once.
uint64_t BytesOf(const tools::OpenFlags& flags, uint64_t length, uint64_t sequences);
// With the KV dtype of `flags`.
Fit FitOne(const tools::OpenFlags& flags, uint64_t length, uint64_t memory_bytes);
// For each KV dtype that the model can have, the most sequences of `length` tokens, prompt and
// output, that run at once without preemption when model and engine together take at most
// `memory_bytes`.
std::vector<Fit> FitSequences(const tools::OpenFlags& flags, uint64_t length,
                              uint64_t memory_bytes);
std::string FitText(const std::vector<Fit>& fits, uint64_t length, uint64_t memory_bytes);
std::string FitJson(const std::vector<Fit>& fits);

}  // namespace inspect
