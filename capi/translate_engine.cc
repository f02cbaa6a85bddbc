// Enumerations are checked here, since their numbers belong to the ABI; ranges are the engine's to
// check.
#include "capi/translate_engine.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "capi/strings.h"
#include "capi/translate_host.h"
#include "capi/versioned_struct.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

absl::Status TranslateKvDType(uint32_t value, DType* dtype) {
  switch (value) {
    case LLM_KV_DEFAULT:
    case LLM_KV_F16:
      *dtype = DType::kF16;
      return absl::OkStatus();
    case LLM_KV_F32:
      *dtype = DType::kF32;
      return absl::OkStatus();
    case LLM_KV_BF16:
      *dtype = DType::kBF16;
      return absl::OkStatus();
    case LLM_KV_FP8_E4M3:
      *dtype = DType::kF8E4M3;
      return absl::OkStatus();
    case LLM_KV_INT8:
      *dtype = DType::kI8;
      return absl::OkStatus();
    case LLM_KV_INT4:
      *dtype = DType::kI4;
      return absl::OkStatus();
    default:
      return absl::InvalidArgumentError(absl::StrCat("kv_dtype: ", value, " is unknown"));
  }
}

absl::Status CheckEnum(absl::string_view name, uint32_t value, uint32_t last) {
  if (value <= last) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", value, " is unknown"));
}

absl::Status CheckReserved(const llm_engine_options& c) {
  const char* field = nullptr;
  if (c.num_ranks > 1) field = "num_ranks";
  if (c.reserved != 0) field = "reserved";
  if (c.reserved2 != 0) field = "reserved2";
  if (field == nullptr) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(field, ": reserved for a later version"));
}

absl::Status TranslateSimCosts(const llm_sim_costs* given, OpenOptions* options) {
  if (given == nullptr) return absl::OkStatus();
  llm_sim_costs c;
  LLM_RETURN_IF_ERROR(ReadStruct("llm_sim_costs", given, &c));
  if (c.reserved != 0) return absl::UnimplementedError("sim_costs: reserved is not 0");
  // A second for each: no sum of a step's overflows a clock.
  constexpr uint64_t kMostNs = 1'000'000'000;
  for (const uint64_t ns : {c.fixed_ns, c.decode_row_ns, c.prefill_token_ns, c.decode_key_ps / 1000,
                            c.prefill_pair_ps / 1000}) {
    if (ns <= kMostNs) continue;
    return absl::InvalidArgumentError(absl::StrCat("sim_costs: ", ns, " ns exceed a second"));
  }
  options->has_sim_cost = true;
  options->sim_cost = {.fixed = static_cast<double>(c.fixed_ns),
                       .decode_row = static_cast<double>(c.decode_row_ns),
                       .prefill_token = static_cast<double>(c.prefill_token_ns),
                       .decode_key = static_cast<double>(c.decode_key_ps) / 1e3,
                       .prefill_pair = static_cast<double>(c.prefill_pair_ps) / 1e3};
  return absl::OkStatus();
}

}  // namespace

absl::Status TranslateEngineOptions(const llm_engine_options* given, OpenOptions* options) {
  llm_engine_options c;
  llm_engine_options_init(&c);
  if (given != nullptr) LLM_RETURN_IF_ERROR(ReadStruct("llm_engine_options", given, &c));
  LLM_RETURN_IF_ERROR(CheckReserved(c));
  LLM_RETURN_IF_ERROR(TranslateKvDType(c.kv_dtype, &options->kv_dtype));
  LLM_RETURN_IF_ERROR(CheckEnum("policy", c.policy, LLM_POLICY_DEADLINE));
  LLM_RETURN_IF_ERROR(CheckEnum("admission", c.admission, LLM_ADMISSION_GREEDY));
  LLM_RETURN_IF_ERROR(CheckEnum("drive", c.drive, LLM_DRIVE_MANUAL));
  LLM_RETURN_IF_ERROR(ReadSwitch("prefix_cache", c.prefix_cache, true, &options->prefix_cache));
  LLM_RETURN_IF_ERROR(ReadSwitch("graphs", c.graphs, true, &options->graphs));
  LLM_RETURN_IF_ERROR(ReadSwitch("run_ahead", c.run_ahead, true, &options->run_ahead));
  LLM_RETURN_IF_ERROR(
      ReadSwitch("batch_invariant", c.batch_invariant, true, &options->batch_invariant));
  LLM_RETURN_IF_ERROR(TranslateHost(c.host, &options->host));
  LLM_RETURN_IF_ERROR(TranslateSimCosts(c.sim_costs, options));
  // A program of ABI 1.0 cannot switch it off, and knows no such refusals.
  const bool knows_refusals =
      given == nullptr || given->struct_size > offsetof(llm_engine_options, refuse_late);
  LLM_RETURN_IF_ERROR(
      ReadSwitch("refuse_late", c.refuse_late, knows_refusals, &options->refuse_late));
  options->num_threads = c.num_threads != 0 ? c.num_threads : ThreadsOfCpus(options->host);
  options->block_size = c.block_size;
  options->kv_tokens = c.kv_tokens;
  options->max_context_tokens = c.max_context_tokens;
  options->max_sequences = c.max_sequences;
  options->max_step_tokens = c.max_step_tokens;
  options->token_gap_target_ns = c.token_gap_target_ns;
  options->policy = c.policy == LLM_POLICY_PRIORITY   ? SchedulingPolicy::kPriority
                    : c.policy == LLM_POLICY_DEADLINE ? SchedulingPolicy::kDeadline
                                                      : SchedulingPolicy::kFcfs;
  options->admission = c.admission == LLM_ADMISSION_RESERVE  ? AdmissionPolicy::kReserve
                       : c.admission == LLM_ADMISSION_GREEDY ? AdmissionPolicy::kGreedy
                                                             : AdmissionPolicy::kPredict;
  options->max_queued_requests = c.max_queued_requests;
  options->max_queued_tokens = c.max_queued_tokens;
  options->max_memory_bytes = c.max_memory_bytes;
  options->max_pending_bytes = c.max_pending_bytes;
  LLM_RETURN_IF_ERROR(CheckArray("spill_folder", c.spill_folder.data, c.spill_folder.size));
  if (c.spill_folder.size != 0) {
    LLM_ASSIGN_OR_RETURN(options->spill.folder,
                         PathFromC(c.spill_folder.data, c.spill_folder.size));
  }
  options->spill.max_bytes = c.spill_bytes;
  options->hold_us = c.hold_us;
  options->max_long_requests = c.max_long_requests;
  options->long_request_tokens =
      static_cast<int64_t>(std::min<uint64_t>(c.long_request_tokens, INT64_MAX));
  options->manual = c.drive == LLM_DRIVE_MANUAL;
  options->spin_us = c.spin_us;
  options->logger = Logger(c.log, c.log_user_data);
  return absl::OkStatus();
}

}  // namespace llm
