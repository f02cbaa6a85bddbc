// llm-eval: perplexity of a text, and how far a second configuration in the same process lies from
// the first: KL divergence and top-1 agreement. Windows do not overlap; the second half of each is
// scored.
#include <cmath>
#include <cstdio>
#include <optional>

#include "common/flags.h"
#include "common/open.h"
#include "common/text.h"
#include "eval/compare.h"
#include "eval/windows.h"

namespace {

using tools::Format;

struct Flags {
  tools::OpenFlags open, against;
  std::string text_path, ids_path, json_path, changes;
  unsigned context = 512, windows = 0;
  bool compare = false;
};

// "kv-dtype=fp8,float-activations=on" over the flags of the base.
void ParseAgainst(const tools::FlagTable& table, Flags* flags) {
  flags->against = flags->open;
  tools::FlagTable changes("");
  tools::AddModelFlags(&flags->against, &changes);
  tools::AddEngineFlags(&flags->against, &changes);
  for (size_t begin = 0; begin <= flags->changes.size();) {
    const size_t end = std::min(flags->changes.find(',', begin), flags->changes.size());
    const std::string wrong = changes.Set(flags->changes.substr(begin, end - begin));
    if (!wrong.empty()) table.FailUsage("--against: " + wrong);
    begin = end + 1;
  }
}

Flags ParseFlags(int argc, char** argv) {
  Flags flags;
  tools::FlagTable table("MODEL (--text FILE | --ids FILE) [flag ...]");
  tools::AddModelFlags(&flags.open, &table);
  tools::AddEngineFlags(&flags.open, &table);
  table.SetPositional("--model");
  table.Add("--text", "file to score", &flags.text_path);
  table.Add("--ids", "the same as a JSON array of token ids", &flags.ids_path);
  table.Add("--context", "tokens of a window (512)", &flags.context);
  table.Add("--windows", "how many; default: all that the text has", &flags.windows);
  table.Add("--against", "a second configuration, by what differs: kv-dtype=fp8,float-activations",
            &flags.changes);
  table.Add("--json", "file for the numbers as JSON", &flags.json_path);
  table.Parse(argc, argv);
  if (flags.open.model.empty()) table.FailUsage("the model is missing");
  if (table.Given("--text") == table.Given("--ids"))
    table.FailUsage("give exactly one of --text, --ids");
  if (flags.context < 2 || flags.context > (1u << 24))
    table.FailUsage("--context: not in [2, 16777216]");
  flags.compare = table.Given("--against");
  if (flags.compare) ParseAgainst(table, &flags);
  return flags;
}

std::vector<std::vector<int32_t>> ReadWindows(const Flags& flags, const inlay::Model& model) {
  std::vector<int32_t> ids;
  if (flags.ids_path.empty()) {
    ids = eval::Tokenize(model, tools::ReadFile(flags.text_path));
  } else {
    const std::string wrong = tools::ParseIds(tools::ReadFile(flags.ids_path), &ids);
    if (!wrong.empty()) tools::Fail(flags.ids_path + ": " + wrong);
  }
  std::vector<std::vector<int32_t>> windows =
      eval::CutWindows(ids, eval::LeadingBos(model), flags.context, flags.windows);
  if (windows.empty() || windows.size() < flags.windows)
    tools::Fail(Format("the text has %zu tokens: %zu windows of %u", ids.size(), windows.size(),
                       flags.context));
  return windows;
}

struct Results {
  eval::Perplexity base, against;
  eval::Divergence divergence;
};

void ScoreAll(const std::vector<std::vector<int32_t>>& windows, eval::Configuration* base,
              eval::Configuration* against, Results* results) {
  const size_t vocab_size = static_cast<size_t>(tools::ModelInfo(base->model()).vocab_size);
  eval::Divergence& divergence = results->divergence;
  for (size_t i = 0; i < windows.size(); ++i) {
    const std::vector<int32_t>& window = windows[i];
    if (against == nullptr) {
      results->base.AddWindow(base->Score(window, nullptr));
    } else {
      divergence.BeginWindow(window.size() - window.size() / 2, vocab_size);
      results->base.AddWindow(
          base->Score(window, [&](const llm_score_row& row) { divergence.AddBase(row); }));
      results->against.AddWindow(
          against->Score(window, [&](const llm_score_row& row) { divergence.AddOther(row); }));
    }
    std::fprintf(stderr, "window %zu of %zu: perplexity so far %.4f\n", i + 1, windows.size(),
                 results->base.Value());
  }
}

std::string PerplexityText(const eval::Perplexity& perplexity) {
  std::string text = Format("perplexity %.5f", perplexity.Value());
  if (std::isfinite(perplexity.StandardError()))
    text += Format(" +- %.5f", perplexity.StandardError());
  return text;
}

// JSON has no NaN.
std::string Number(double value) { return std::isfinite(value) ? Format("%.9g", value) : "null"; }

std::string ConfigurationJson(const std::string& description, const eval::Perplexity& perplexity) {
  std::string text = "{\"configuration\": " + tools::JsonString(description) +
                     ", \"perplexity\": " + Number(perplexity.Value()) +
                     ", \"standard_error\": " + Number(perplexity.StandardError()) +
                     ", \"mean_nll\": " + Number(perplexity.MeanNll()) + ", \"window_mean_nll\": [";
  for (const double mean : perplexity.window_mean_nll())
    text += (text.back() == '[' ? "" : ", ") + Number(mean);
  return text + "]}";
}

void Print(const std::string& base, const std::string& against, const Results& results,
           const Flags& flags) {
  std::printf("%zu windows of %u tokens, %llu scored\n", results.base.window_mean_nll().size(),
              flags.context, static_cast<unsigned long long>(results.base.count()));
  std::printf("base:    %s (%s)\n", PerplexityText(results.base).c_str(), base.c_str());
  if (!flags.compare) return;
  const eval::Divergence& divergence = results.divergence;
  const eval::NllDifference difference = eval::Difference(results.base, results.against);
  std::printf("against: %s (%s)\n", PerplexityText(results.against).c_str(), against.c_str());
  std::printf("perplexity %+.4f %%", 100 * std::expm1(difference.mean));
  if (std::isfinite(difference.standard_error))
    std::printf(" +- %.4f", 100 * difference.standard_error);
  std::printf("; KL divergence mean %.3g, p99 %.3g; top-1 agreement %.2f %%\n", divergence.MeanKl(),
              divergence.QuantileKl(0.99), 100 * divergence.Top1Agreement());
}

std::string Json(const std::string& base, const std::string& against, const Results& results,
                 const Flags& flags) {
  std::string json = Format("{\"windows\": %zu, \"context\": %u, \"scored\": %llu, \"base\": ",
                            results.base.window_mean_nll().size(), flags.context,
                            static_cast<unsigned long long>(results.base.count())) +
                     ConfigurationJson(base, results.base);
  if (!flags.compare) return json + "}\n";
  const eval::Divergence& divergence = results.divergence;
  return json + ", \"against\": " + ConfigurationJson(against, results.against) +
         ", \"kl_mean\": " + Number(divergence.MeanKl()) +
         ", \"kl_p99\": " + Number(divergence.QuantileKl(0.99)) +
         ", \"top1_agreement\": " + Number(divergence.Top1Agreement()) + "}\n";
}

}  // namespace

int main(int argc, char** argv) {
  const Flags flags = ParseFlags(argc, argv);
  eval::Configuration base(flags.open, flags.context, nullptr);
  std::optional<eval::Configuration> against;
  if (flags.compare) against.emplace(flags.against, flags.context, &base);
  Results results;
  ScoreAll(ReadWindows(flags, base.model()), &base, against ? &*against : nullptr, &results);

  const std::string description = base.Description();
  const std::string other = against ? against->Description() : "";
  Print(description, other, results, flags);
  if (!flags.json_path.empty())
    tools::WriteFile(flags.json_path, Json(description, other, results, flags));
  if (std::fflush(stdout) != 0) tools::Fail("cannot write the numbers");
  return 0;
}
