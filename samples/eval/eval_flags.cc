// Configurations are given by what differs: "kv-dtype=fp8,float-activations" over other flags.
#include "eval/eval_flags.h"

#include <algorithm>

#include "common/flags.h"

namespace eval {
namespace {

std::vector<std::string> Split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

tools::OpenFlags Changed(const tools::OpenFlags& flags, const std::string& text,
                         const char* flag_name, const tools::FlagTable& table) {
  tools::OpenFlags changed = flags;
  tools::FlagTable changes("");
  tools::AddModelFlags(&changed, &changes);
  tools::AddEngineFlags(&changed, &changes);
  for (const std::string& part : Split(text)) {
    const std::string wrong = changes.Set(part);
    if (!wrong.empty()) table.FailUsage(flag_name + (": " + wrong));
  }
  return changed;
}

struct Given {
  std::string against, base = "kv-dtype=f32,float-activations", kv_dtypes;
  std::vector<std::string> weights;
};

void AddTableFlags(Flags* flags, Given* given, tools::FlagTable* table) {
  table->Add("--kv-dtypes", "a table with a row for each of these KV dtypes: f16,fp8,int8",
             &given->kv_dtypes);
  table->Add("--weights",
             "and for each further weights, by what differs; may be repeated: model=PATH",
             [given](const std::string& text) {
               given->weights.push_back(text);
               return std::string();
             });
  table->Add("--base", "what the rows are compared with (kv-dtype=f32,float-activations)",
             &given->base);
  table->Add("--choices", "JSONL of multiple-choice questions, for the rows", &flags->choices_path);
  table->Add("--length", "tokens of a sequence, for how many fit; default: the context",
             &flags->length);
  table->Add(
      "--memory", "that they fit in, such as 4GiB; default: as 100 take with KV f16",
      [flags](const std::string& text) { return tools::ParseBytes(text, &flags->memory_bytes); });
  table->Add("--no-speed", "leave prefill and decode out", &flags->no_speed);
  table->Add("--markdown", "file for the table as Markdown", &flags->markdown_path);
}

void Resolve(const Given& given, const tools::FlagTable& table, Flags* flags) {
  flags->compare = table.Given("--against");
  if (flags->compare) flags->against = Changed(flags->open, given.against, "--against", table);
  flags->table = table.Given("--weights") || table.Given("--kv-dtypes");
  if (flags->table && flags->compare) table.FailUsage("--against makes no table: use --base");
  for (const char* name :
       {"--base", "--choices", "--length", "--memory", "--no-speed", "--markdown"})
    if (table.Given(name) && !flags->table)
      table.FailUsage(name + std::string(" goes with --weights or --kv-dtypes"));
  if (!flags->table) return;
  flags->base = Changed(flags->open, given.base, "--base", table);
  flags->kv_dtypes = {flags->open.kv_dtype};
  if (table.Given("--kv-dtypes")) flags->kv_dtypes = Split(given.kv_dtypes);
  for (const std::string& name : flags->kv_dtypes)
    Changed(flags->open, "kv-dtype=" + name, "--kv-dtypes", table);
  flags->weights = {{"", flags->open}};
  for (const std::string& text : given.weights)
    flags->weights.push_back({text, Changed(flags->open, text, "--weights", table)});
  if (flags->length == 0) flags->length = flags->context;
}

}  // namespace

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  Given given;
  tools::FlagTable table("MODEL (--text FILE | --ids FILE) [flag ...]");
  tools::AddModelFlags(&flags.open, &table);
  tools::AddEngineFlags(&flags.open, &table);
  table.SetPositional("--model");
  table.Add("--text", "file to score", &flags.text_path);
  table.Add("--ids", "the same as a JSON array of token ids", &flags.ids_path);
  table.Add("--context", "tokens of a window (512)", &flags.context);
  table.Add("--windows", "how many; default: all that the text has", &flags.windows);
  table.Add("--against", "a second configuration, by what differs: kv-dtype=fp8,float-activations",
            &given.against);
  AddTableFlags(&flags, &given, &table);
  table.Add("--json", "file for the numbers as JSON", &flags.json_path);
  table.Parse(argc, argv);
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  if (table.Given("--text") == table.Given("--ids"))
    table.FailUsage("give exactly one of --text, --ids");
  if (flags.context < 2 || flags.context > (1u << 24))
    table.FailUsage("--context: not in [2, 16777216]");
  Resolve(given, table, &flags);
  return flags;
}

}  // namespace eval
