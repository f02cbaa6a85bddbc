// Asks llm_plan again and again, so that window layers and workspaces count as they are.
#include "inspect/fit.h"

#include <algorithm>

#include "common/text.h"

namespace inspect {
namespace {

using tools::Bytes;
using tools::Format;

constexpr uint64_t kMostSequences = 1 << 16;  // the library's bounds
constexpr uint64_t kMostKvTokens = uint64_t{1} << 28;

// Each sequence fills its blocks and keeps one of reserve, as admission wants it.
uint64_t TokensOfSequence(uint64_t length, uint64_t block_size) {
  return (length + block_size - 1) / block_size * block_size + block_size;
}

llm_status AskPlan(const tools::OpenFlags& flags, const llm_engine_options& options,
                   llm_memory_plan* plan) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = inlay::String(flags.model);
  const llm_model_options model_options = tools::ModelOptions(flags);
  llm_memory_plan_init(plan);
  return llm_plan(&source, &model_options, &options, plan);
}

llm_memory_plan PlanFor(const tools::OpenFlags& flags, uint64_t length, uint64_t sequences) {
  llm_engine_options options = tools::EngineOptions(flags);
  options.max_sequences = static_cast<uint32_t>(sequences);
  options.max_context_tokens = static_cast<uint32_t>(length);
  const uint64_t block_size = flags.block_size != 0 ? flags.block_size : 16;
  options.kv_tokens = sequences * TokensOfSequence(length, block_size);
  return Plan(flags, options);
}

unsigned long long Long(uint64_t value) { return value; }

// Not every head size can be stored as every dtype.
bool CanBeStored(const tools::OpenFlags& flags) {
  llm_memory_plan plan;
  const llm_engine_options options = tools::EngineOptions(flags);
  return AskPlan(flags, options, &plan) != LLM_INVALID_ARGUMENT;
}

}  // namespace

llm_memory_plan Plan(const tools::OpenFlags& flags, const llm_engine_options& options) {
  llm_memory_plan plan;
  tools::Check(AskPlan(flags, options, &plan));
  return plan;
}

uint64_t ResidentBytes(const llm_memory_plan& plan) {
  return plan.weights_bytes + plan.tokenizer_bytes + plan.kv_bytes + plan.workspace_bytes;
}

std::string PlanText(const llm_memory_plan& plan) {
  std::string text = Format(
      "plan: %u sequences at once, %llu KV tokens, %u tokens of context, %u a step\n",
      plan.max_sequences, Long(plan.kv_tokens), plan.max_context_tokens, plan.max_step_tokens);
  const std::pair<const char*, uint64_t> rows[] = {{"weights", plan.weights_bytes},
                                                   {"tokenizer", plan.tokenizer_bytes},
                                                   {"KV", plan.kv_bytes},
                                                   {"workspace", plan.workspace_bytes},
                                                   {"in all", ResidentBytes(plan)},
                                                   {"while loading", plan.loading_bytes},
                                                   {"events, at most", plan.event_bytes}};
  for (const auto& [name, bytes] : rows)
    text += Format("  %-16s %12s  %14llu bytes\n", name, Bytes(bytes).c_str(), Long(bytes));
  return text;
}

std::string PlanJson(const llm_memory_plan& plan) {
  return Format(
      "{\"max_sequences\": %u, \"kv_tokens\": %llu, \"max_context_tokens\": %u, "
      "\"max_step_tokens\": %u, \"weights_bytes\": %llu, \"tokenizer_bytes\": %llu, "
      "\"kv_bytes\": %llu, \"workspace_bytes\": %llu, \"loading_bytes\": %llu, "
      "\"event_bytes\": %llu}",
      plan.max_sequences, Long(plan.kv_tokens), plan.max_context_tokens, plan.max_step_tokens,
      Long(plan.weights_bytes), Long(plan.tokenizer_bytes), Long(plan.kv_bytes),
      Long(plan.workspace_bytes), Long(plan.loading_bytes), Long(plan.event_bytes));
}

uint64_t BytesOf(const tools::OpenFlags& flags, uint64_t length, uint64_t sequences) {
  return ResidentBytes(PlanFor(flags, length, sequences));
}

// Bytes are close to a line in the number of sequences: guesses along it end the search after a few
// plans, and every third guess halves what is left in case they do not.
Fit FitOne(const tools::OpenFlags& flags, uint64_t length, uint64_t memory_bytes) {
  const uint64_t block_size = flags.block_size != 0 ? flags.block_size : 16;
  llm_memory_plan plan = PlanFor(flags, length, 1);
  const uint64_t of_one = ResidentBytes(plan);
  if (of_one > memory_bytes) return {flags.kv_dtype, 0, 0, 0};
  const uint64_t of_two = ResidentBytes(PlanFor(flags, length, 2));
  const uint64_t each = std::max<uint64_t>(of_two - std::min(of_one, of_two), 1);
  uint64_t fits = 1;
  uint64_t fails =
      std::min(kMostSequences, kMostKvTokens / TokensOfSequence(length, block_size)) + 1;
  for (int guess = 1; fails - fits > 1; ++guess) {
    uint64_t next = fits + (memory_bytes - ResidentBytes(plan)) / each;
    if (guess % 3 == 0) next = fits + (fails - fits) / 2;
    next = std::clamp(next, fits + 1, fails - 1);
    const llm_memory_plan tried = PlanFor(flags, length, next);
    if (ResidentBytes(tried) > memory_bytes) {
      fails = next;
    } else {
      fits = next;
      plan = tried;
    }
  }
  return {flags.kv_dtype, fits, plan.kv_bytes, ResidentBytes(plan)};
}

std::vector<Fit> FitSequences(const tools::OpenFlags& flags, uint64_t length,
                              uint64_t memory_bytes) {
  std::vector<Fit> fits;
  for (const auto& [name, id] : tools::kKvDtypes) {
    tools::OpenFlags with_dtype = flags;
    with_dtype.kv_dtype = name;
    if (CanBeStored(with_dtype)) fits.push_back(FitOne(with_dtype, length, memory_bytes));
  }
  return fits;
}

std::string FitText(const std::vector<Fit>& fits, uint64_t length, uint64_t memory_bytes) {
  std::string text = Format("sequences of %llu tokens that run at once in %s, weights included:\n",
                            Long(length), Bytes(memory_bytes).c_str());
  text += "  KV     sequences            KV        in all\n";
  for (const Fit& fit : fits)
    text += Format("  %-5s %10llu  %12s  %12s\n", fit.kv_dtype.c_str(), Long(fit.sequences),
                   Bytes(fit.kv_bytes).c_str(), Bytes(fit.total_bytes).c_str());
  return text;
}

std::string FitJson(const std::vector<Fit>& fits) {
  std::string text = "{";
  for (const Fit& fit : fits)
    text += Format("%s\"%s\": {\"sequences\": %llu, \"kv_bytes\": %llu, \"total_bytes\": %llu}",
                   text.size() == 1 ? "" : ", ", fit.kv_dtype.c_str(), Long(fit.sequences),
                   Long(fit.kv_bytes), Long(fit.total_bytes));
  return text + "}";
}

}  // namespace inspect
