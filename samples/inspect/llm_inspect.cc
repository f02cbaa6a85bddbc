// llm-inspect: what a model file holds, what a model and an engine will take in memory, and how
// many sequences fit. Reads the header alone.
#include <cstdio>

#include "common/flags.h"
#include "common/open.h"
#include "inspect/contents.h"
#include "inspect/fit.h"

namespace {

struct Flags {
  tools::OpenFlags open;
  unsigned max_sequences = 0, max_context_tokens = 0, length = 0;
  uint64_t kv_tokens = 0, memory_bytes = 0;
  bool every_tensor = false, json = false;
};

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  tools::FlagTable table("MODEL [flag ...]");
  tools::AddModelFlags(&flags.open, &table);
  table.SetPositional("--model");
  table.Add("--tensors", "list every tensor", &flags.every_tensor);
  tools::AddEngineFlags(&flags.open, &table);
  table.Add("--max-sequences", "running at once; default: the library's", &flags.max_sequences);
  table.Add("--kv-tokens", "default: the library's", &flags.kv_tokens);
  table.Add("--max-context-tokens", "of one request; default: the library's",
            &flags.max_context_tokens);
  table.Add("--length", "tokens of a sequence, for the table of how many fit", &flags.length);
  table.Add(
      "--memory", "that they may take with the model, such as 4GiB",
      [&flags](const std::string& text) { return tools::ParseBytes(text, &flags.memory_bytes); });
  table.Add("--json", "one JSON object instead of text", &flags.json);
  table.Parse(argc, argv);
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  if (table.Given("--length") != table.Given("--memory"))
    table.FailUsage("--length and --memory go together");
  if (table.Given("--length") && flags.length == 0) table.FailUsage("--length: at least 1");
  return flags;
}

inlay::Model OpenHeader(const tools::OpenFlags& flags) {
  llm_model_options options = tools::ModelOptions(flags);
  options.header_only = LLM_ON;
  inlay::Model model;
  tools::Check(inlay::Model::Open(flags.model, &options, &model));
  return model;
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  const inlay::Model model = OpenHeader(flags.open);
  const inspect::Contents contents = inspect::ReadContents(model);
  llm_engine_options options = tools::EngineOptions(flags.open);
  options.max_sequences = flags.max_sequences;
  options.max_context_tokens = flags.max_context_tokens;
  options.kv_tokens = flags.kv_tokens;
  const llm_memory_plan plan = inspect::Plan(flags.open, options);
  std::vector<inspect::Fit> fits;
  if (flags.length != 0) fits = inspect::FitSequences(flags.open, flags.length, flags.memory_bytes);

  std::string text;
  if (flags.json) {
    text = "{" + inspect::ContentsJson(contents) + ", \"plan\": " + inspect::PlanJson(plan);
    if (flags.length != 0) text += ", \"fits\": " + inspect::FitJson(fits);
    text += "}\n";
  } else {
    text = inspect::ContentsText(contents, flags.every_tensor) + inspect::PlanText(plan);
    if (flags.length != 0) text += inspect::FitText(fits, flags.length, flags.memory_bytes);
  }
  if (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    tools::Fail("cannot write the listing");
  return 0;
}
