// llm-quantize: a model with its weights in fewer bits, or pruned, as a pack or a GGUF file.
#include <cstdio>

#include "common/flags.h"
#include "common/open.h"
#include "common/text.h"

namespace {

struct Flags {
  tools::OpenFlags open;
  std::string output;
  bool quiet = false;
};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}
bool IsGguf(const Flags& flags) { return EndsWith(flags.output, ".gguf"); }

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  tools::FlagTable table("MODEL (OUT.llmpack | OUT.gguf) flag ...");
  table.Add("--model", "GGUF file or model directory", &flags.open.model);
  table.Add("--output", "what was there is replaced once it is whole", &flags.output);
  table.SetPositionals({"--model", "--output"});
  tools::AddWeightFlags(&flags.open.weights, &table);
  table.Add("--kernels",
            "that a pack is for: avx512, avx2, generic, reference; default: the fastest",
            &flags.open.kernels);
  table.Add("--threads", "0 (default): all cores", &flags.open.threads);
  table.Add("--quiet", "says nothing but what is wrong", &flags.quiet);
  table.Parse(argc, argv);
  if (flags.open.model.empty() || flags.output.empty())
    table.FailUsage("MODEL and OUT are missing");
  if (!IsGguf(flags) && !EndsWith(flags.output, ".llmpack"))
    table.FailUsage("OUT ends neither in .llmpack nor in .gguf");
  if (!flags.open.weights.Any())
    table.FailUsage("say what is to change: --linear int4, for one; llm-pack packs as it is");
  return flags;
}

uint64_t WeightBytes(const Flags& flags, const llm_model_source& source, bool quantized) {
  tools::OpenFlags open = flags.open;
  if (!quantized) open.weights = {};
  const llm_model_options options = tools::ModelOptions(open);
  llm_memory_plan plan;
  llm_memory_plan_init(&plan);
  tools::Check(llm_plan(&source, &options, nullptr, &plan));
  return plan.weights_bytes;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = inlay::String(flags.open.model);
  const llm_model_options options = tools::ModelOptions(flags.open);
  tools::Check(IsGguf(flags) ? inlay::SaveGguf(source, &options, flags.output)
                             : inlay::SaveModel(source, &options, flags.output));
  if (flags.quiet) return 0;
  std::printf("%s: weights of %s become %s in memory\n", flags.output.c_str(),
              tools::Bytes(WeightBytes(flags, source, false)).c_str(),
              tools::Bytes(WeightBytes(flags, source, true)).c_str());
  if (std::fflush(stdout) != 0) tools::Fail("cannot write what was done");
  return 0;
}
