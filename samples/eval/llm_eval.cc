// llm-eval: perplexity of a text, and how far other configurations in the same process lie from
// one: KL divergence, top-1 agreement and, in a table of weights x KV dtypes, multiple choice,
// memory and speed. Windows do not overlap; the second half of each is scored.
#include <cmath>
#include <cstdio>

#include "common/text.h"
#include "eval/eval_flags.h"
#include "eval/sweep.h"
#include "eval/windows.h"

namespace {

using eval::Candidate;
using tools::Format;
using Windows = std::vector<std::vector<int32_t>>;

Windows ReadWindows(const eval::Flags& flags, const inlay::Model& model) {
  std::vector<int32_t> ids;
  if (flags.ids_path.empty()) {
    ids = eval::Tokenize(model, tools::ReadFile(flags.text_path));
  } else {
    const std::string wrong = tools::ParseIds(tools::ReadFile(flags.ids_path), &ids);
    if (!wrong.empty()) tools::Fail(flags.ids_path + ": " + wrong);
  }
  Windows windows = eval::CutWindows(ids, eval::LeadingBos(model), flags.context, flags.windows);
  if (windows.empty() || windows.size() < flags.windows)
    tools::Fail(Format("the text has %zu tokens: %zu windows of %u", ids.size(), windows.size(),
                       flags.context));
  return windows;
}

std::string PerplexityText(const Candidate& candidate) {
  const eval::Perplexity& perplexity = candidate.perplexity;
  std::string text = Format("perplexity %.5f", perplexity.Value());
  if (std::isfinite(perplexity.StandardError()))
    text += Format(" +- %.5f", perplexity.StandardError());
  return text + " (" + candidate.configuration->Description() + ")\n";
}

std::string ConfigurationJson(const Candidate& candidate) {
  return "{\"configuration\": " + tools::JsonString(candidate.configuration->Description()) + ", " +
         eval::PerplexityJson(candidate.perplexity) + "}";
}

std::string Text(const Candidate& base, const Candidate* against, const eval::Flags& flags) {
  std::string text =
      Format("%zu windows of %u tokens, %llu scored\n", base.perplexity.window_mean_nll().size(),
             flags.context, static_cast<unsigned long long>(base.perplexity.count())) +
      "base:    " + PerplexityText(base);
  if (against == nullptr) return text;
  const eval::Divergence& divergence = against->divergence;
  const eval::NllDifference difference = eval::Difference(base.perplexity, against->perplexity);
  text += "against: " + PerplexityText(*against) +
          Format("perplexity %+.4f %%", 100 * std::expm1(difference.mean));
  if (std::isfinite(difference.standard_error))
    text += Format(" +- %.4f", 100 * difference.standard_error);
  return text + Format("; KL divergence mean %.3g, p99 %.3g; top-1 agreement %.2f %%\n",
                       divergence.MeanKl(), divergence.QuantileKl(0.99),
                       100 * divergence.Top1Agreement());
}

std::string Json(const Candidate& base, const Candidate* against, const eval::Flags& flags) {
  const std::string json =
      Format("{\"windows\": %zu, \"context\": %u, \"scored\": %llu, \"base\": ",
             base.perplexity.window_mean_nll().size(), flags.context,
             static_cast<unsigned long long>(base.perplexity.count())) +
      ConfigurationJson(base);
  if (against == nullptr) return json + "}\n";
  const eval::Divergence& divergence = against->divergence;
  return json + ", \"against\": " + ConfigurationJson(*against) +
         ", \"kl_mean\": " + eval::JsonNumber(divergence.MeanKl()) +
         ", \"kl_p99\": " + eval::JsonNumber(divergence.QuantileKl(0.99)) +
         ", \"top1_agreement\": " + eval::JsonNumber(divergence.Top1Agreement()) + "}\n";
}

struct Output {
  std::string text, json;
};

Output Compare(const eval::Flags& flags) {
  eval::Configuration configuration(flags.open, flags.context, nullptr);
  std::unique_ptr<eval::Configuration> other;
  Candidate base = {&configuration, {}, {}};
  std::vector<Candidate> against;
  if (flags.compare) {
    other = std::make_unique<eval::Configuration>(flags.against, flags.context, &configuration);
    against.push_back({other.get(), {}, {}});
  }
  eval::ScoreWindows(ReadWindows(flags, configuration.model()), &base, &against);
  const Candidate* second = against.empty() ? nullptr : &against[0];
  return {Text(base, second, flags), Json(base, second, flags)};
}

Output MakeTable(const eval::Flags& flags) {
  eval::Configuration base(flags.base, flags.context, nullptr);
  const eval::Table table = eval::MeasureTable(flags, ReadWindows(flags, base.model()), &base);
  return {eval::TableMarkdown(table), eval::TableJson(table)};
}

}  // namespace

int main(int argc, char** argv) {
  const eval::Flags flags = eval::ParseFlags(argc, argv);
  const Output output = flags.table ? MakeTable(flags) : Compare(flags);
  if (!flags.json_path.empty()) tools::WriteFile(flags.json_path, output.json);
  if (!flags.markdown_path.empty()) tools::WriteFile(flags.markdown_path, output.text);
  if (std::fputs(output.text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)
    tools::Fail("cannot write the numbers");
  return 0;
}
