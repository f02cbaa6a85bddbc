// llm-pack: a model file as a pack, which opens without repacking; and whether a pack is whole.
#include <cstdio>

#include "common/flags.h"
#include "common/open.h"
#include "common/text.h"

namespace {

struct Flags {
  tools::OpenFlags open;
  std::string output, verify;
  bool quiet = false;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  tools::FlagTable table("(MODEL OUT.llmpack | --verify PACK) [flag ...]");
  table.Add("--model", "GGUF file or model directory", &flags.open.model);
  table.Add("--output", "where the pack goes; what was there is replaced once it is whole",
            &flags.output);
  table.SetPositionals({"--model", "--output"});
  table.Add("--verify", "a pack whose checksums are computed and compared", &flags.verify);
  table.Add("--kernels", "avx512, avx2, generic, reference; default: the fastest, as at open",
            &flags.open.kernels);
  table.Add("--threads", "0 (default): all cores", &flags.open.threads);
  table.Add("--quiet", "says nothing but what is wrong", &flags.quiet);
  table.Parse(argc, argv);
  const bool packs = !flags.open.model.empty() || !flags.output.empty();
  if (packs == !flags.verify.empty()) table.FailUsage("either MODEL OUT.llmpack or --verify PACK");
  if (packs && (flags.open.model.empty() || flags.output.empty()))
    table.FailUsage("MODEL and OUT.llmpack go together");
  return flags;
}

void Pack(const Flags& flags) {
  llm_model_source source;
  llm_model_source_init(&source);
  source.kind = LLM_SOURCE_PATH;
  source.path = inlay::String(flags.open.model);
  const llm_model_options options = tools::ModelOptions(flags.open);
  tools::Check(inlay::SaveModel(source, &options, flags.output));
  if (!flags.quiet) std::printf("%s: packed\n", flags.output.c_str());
}

void Verify(const Flags& flags) {
  llm_model_options options = tools::ModelOptions(flags.open);
  options.verify_pack = LLM_ON;
  inlay::Model model;
  tools::Check(inlay::Model::Open(flags.verify, &options, &model));
  const llm_model_info info = tools::ModelInfo(model);
  if (!flags.quiet)
    std::printf("%s: whole, %s of weights for kernels %s\n", flags.verify.c_str(),
                tools::Bytes(info.weights_bytes).c_str(),
                std::string(inlay::View(info.kernels)).c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  if (flags.verify.empty()) {
    Pack(flags);
  } else {
    Verify(flags);
  }
  if (std::fflush(stdout) != 0) tools::Fail("cannot write what was done");
  return 0;
}
