// The flags that every tool has for its model and its engine, and the opens that they ask for.
#pragma once

#include <cstdint>
#include <inlay/llm.hpp>
#include <string>
#include <utility>

#include "common/flags.h"
#include "common/weight_flags.h"

namespace tools {

// 0 and "": the library's default.
struct OpenFlags {
  std::string model, kernels, kv_dtype = "f16";
  unsigned threads = 0;
  unsigned device_index = 0;
  bool float_activations = false, map_pack = false, not_batch_invariant = false;
  bool no_graphs = false, no_run_ahead = false;
  unsigned block_size = 0;
  unsigned max_step_tokens = 0;
  unsigned token_gap_ms = 0;
  WeightFlags weights;

  bool operator==(const OpenFlags&) const = default;
};

// --model, --threads, --kernels, --device-index, --float-activations, --map-pack, and those of
// AddWeightFlags.
void AddModelFlags(OpenFlags* flags, FlagTable* table);
// --kv-dtype, --block-size, --max-step-tokens, --token-gap-ms, --no-batch-invariant, --no-graphs,
// --no-run-ahead.
void AddEngineFlags(OpenFlags* flags, FlagTable* table);

// The names that --kv-dtype takes, the default first.
inline constexpr std::pair<const char*, uint32_t> kKvDtypes[] = {
    {"f16", LLM_KV_F16},      {"f32", LLM_KV_F32},   {"bf16", LLM_KV_BF16},
    {"fp8", LLM_KV_FP8_E4M3}, {"int8", LLM_KV_INT8}, {"int4", LLM_KV_INT4}};
// LLM_KV_* of one of them.
uint32_t KvDtype(const std::string& name);

// Whether both open the same model in the same form, so that one open serves both.
bool SameModel(const OpenFlags& a, const OpenFlags& b);

// Strings in them are borrowed from `flags`.
llm_model_options ModelOptions(const OpenFlags& flags);
llm_engine_options EngineOptions(const OpenFlags& flags);

// Exit with a message on failure.
void Check(const inlay::Status& status);
inlay::Model OpenModel(const OpenFlags& flags);
llm_model_info ModelInfo(const inlay::Model& model);

}  // namespace tools
