// From flags to options.
#include "common/open.h"

namespace tools {
namespace {

std::string ParseKvDtype(const std::string& name, std::string* out) {
  for (const auto& [known, id] : kKvDtypes) {
    if (name != known) continue;
    *out = name;
    return "";
  }
  return "unknown: " + name;
}

}  // namespace

void AddModelFlags(OpenFlags* flags, FlagTable* table) {
  table->Add("--model", "GGUF file, pack or model directory", &flags->model);
  table->Add("--threads", "0 (default): all cores", &flags->threads);
  table->Add("--kernels", "avx512, avx2, generic, reference, cuda; default: the fastest",
             &flags->kernels);
  table->Add("--device-index", "of the GPUs; default: the first", &flags->device_index);
  table->Add("--float-activations", "f32 activations for integer and BF16 weights: slower, closer",
             &flags->float_activations);
  table->Add("--map-pack", "map the pack's weights: trusts whoever can write the file",
             &flags->map_pack);
  AddWeightFlags(&flags->weights, table);
}

void AddEngineFlags(OpenFlags* flags, FlagTable* table) {
  table->Add("--kv-dtype", "f16 (default), f32, bf16, fp8, int8, int4 (experimental)",
             [flags](const std::string& name) { return ParseKvDtype(name, &flags->kv_dtype); });
  table->Add("--block-size", "tokens; default: the library's", &flags->block_size);
  table->Add("--token-gap-ms", "token_gap_target_ns; default: none", &flags->token_gap_ms);
  table->Add("--max-step-tokens", "step budget; default: the library's", &flags->max_step_tokens);
  table->Add("--no-batch-invariant", "batch_invariant off: a GPU's answers may depend on the batch",
             &flags->not_batch_invariant);
  table->Add("--no-graphs", "graphs off: a GPU is given a step's work piece by piece",
             &flags->no_graphs);
  table->Add("--no-run-ahead", "run_ahead off: a GPU begins no step before it is asked for",
             &flags->no_run_ahead);
}

uint32_t KvDtype(const std::string& name) {
  for (const auto& [known, id] : kKvDtypes)
    if (name == known) return id;
  return LLM_KV_DEFAULT;
}

bool SameModel(const OpenFlags& a, const OpenFlags& b) {
  OpenFlags other = b;  // with the engine's flags of `a`
  other.kv_dtype = a.kv_dtype;
  other.block_size = a.block_size;
  other.max_step_tokens = a.max_step_tokens;
  other.token_gap_ms = a.token_gap_ms;
  other.not_batch_invariant = a.not_batch_invariant;
  other.no_graphs = a.no_graphs;
  other.no_run_ahead = a.no_run_ahead;
  return a == other;
}

llm_model_options ModelOptions(const OpenFlags& flags) {
  llm_model_options options;
  llm_model_options_init(&options);
  options.num_threads = flags.threads;
  options.kernels = inlay::String(flags.kernels);
  options.device_index = flags.device_index;
  options.float_activations = flags.float_activations ? LLM_ON : 0;
  options.map_pack = flags.map_pack ? LLM_ON : 0;
  SetWeightOptions(flags.weights, &options);
  return options;
}

llm_engine_options EngineOptions(const OpenFlags& flags) {
  llm_engine_options options;
  llm_engine_options_init(&options);
  options.num_threads = flags.threads;
  options.kv_dtype = KvDtype(flags.kv_dtype);
  options.block_size = flags.block_size;
  options.max_step_tokens = flags.max_step_tokens;
  options.token_gap_target_ns = int64_t{flags.token_gap_ms} * 1'000'000;
  options.batch_invariant = flags.not_batch_invariant ? LLM_OFF : 0;
  options.graphs = flags.no_graphs ? LLM_OFF : 0;
  options.run_ahead = flags.no_run_ahead ? LLM_OFF : 0;
  return options;
}

void Check(const inlay::Status& status) {
  if (!status.ok()) Fail(std::string(status.name()) + ": " + status.message());
}

inlay::Model OpenModel(const OpenFlags& flags) {
  const llm_model_options options = ModelOptions(flags);
  inlay::Model model;
  Check(inlay::Model::Open(flags.model, &options, &model));
  return model;
}

llm_model_info ModelInfo(const inlay::Model& model) {
  llm_model_info info;
  Check(model.GetInfo(&info));
  return info;
}

}  // namespace tools
