// Numbers are shown to as many digits as their errors allow.
#include "eval/table.h"

#include <cmath>

#include "common/text.h"

namespace eval {
namespace {

using tools::Format;

// "-" for what was not measured.
std::string Cell(const char* format, double value) {
  if (!std::isfinite(value) || value == 0) return "-";
  std::string text(64, '\0');
  text.resize(static_cast<size_t>(std::snprintf(text.data(), text.size(), format, value)));
  return text;
}

std::string MarkdownRow(const TableRow& row, bool is_base) {
  const Divergence& divergence = row.divergence;
  std::string text = "| " + row.weights + " | " + row.kv_dtype + " | " +
                     Cell("%.2f", row.bytes_per_weight) + " | " +
                     Cell("%.1f MiB", static_cast<double>(row.weights_bytes) / (1 << 20)) + " | " +
                     Format("%llu", static_cast<unsigned long long>(row.sequences)) +
                     Format(" (%.2fx)", row.sequence_gain) + " | " +
                     Cell("%.0f", row.speed.prefill) + " | " + Cell("%.0f", row.speed.decode);
  text += Format(" | %.4f | ", row.perplexity.Value());
  if (is_base) return text + "base | base | " + Cell("%.1f %%", 100 * row.accuracy) + " |\n";
  text += Format("%.2e | %.2f %% | ", divergence.MeanKl(), 100 * divergence.Top1Agreement());
  text += Cell("%.1f %%", 100 * row.accuracy);
  if (std::isfinite(row.picks_alike)) text += Format(" (%.1f %%)", 100 * row.picks_alike);
  return text + " |\n";
}

std::string RowJson(const TableRow& row, bool is_base) {
  std::string text = "{\"weights\": " + tools::JsonString(row.weights) +
                     ", \"kv_dtype\": " + tools::JsonString(row.kv_dtype) +
                     ", \"configuration\": " + tools::JsonString(row.configuration) +
                     ", \"bytes_per_weight\": " + JsonNumber(row.bytes_per_weight) +
                     Format(", \"weights_bytes\": %llu, \"sequences\": %llu",
                            static_cast<unsigned long long>(row.weights_bytes),
                            static_cast<unsigned long long>(row.sequences)) +
                     ", \"sequence_gain\": " + JsonNumber(row.sequence_gain) +
                     ", \"prefill_tokens_per_s\": " + JsonNumber(row.speed.prefill) +
                     ", \"decode_tokens_per_s\": " + JsonNumber(row.speed.decode) + ", " +
                     PerplexityJson(row.perplexity) + ", \"accuracy\": " + JsonNumber(row.accuracy);
  if (is_base) return text + "}";
  return text + ", \"nll_difference\": " + JsonNumber(row.nll_difference.mean) +
         ", \"nll_difference_error\": " + JsonNumber(row.nll_difference.standard_error) +
         ", \"kl_mean\": " + JsonNumber(row.divergence.MeanKl()) +
         ", \"kl_p99\": " + JsonNumber(row.divergence.QuantileKl(0.99)) +
         ", \"top1_agreement\": " + JsonNumber(row.divergence.Top1Agreement()) +
         ", \"picks_alike\": " + JsonNumber(row.picks_alike) + "}";
}

}  // namespace

std::string TableMarkdown(const Table& table) {
  std::string text =
      Format("%zu windows of %zu tokens; sequences of %llu tokens in %s; %zu questions\n\n",
             table.windows, table.context, static_cast<unsigned long long>(table.length),
             tools::Bytes(table.memory_bytes).c_str(), table.questions);
  text +=
      "| weights | KV | bytes a weight | weights | sequences (of KV f16) | prefill tok/s | "
      "decode tok/s | perplexity | mean KL | same top-1 | choices right (as base) |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n";
  text += MarkdownRow(table.base, true);
  for (const TableRow& row : table.rows) text += MarkdownRow(row, false);
  return text;
}

std::string TableJson(const Table& table) {
  std::string text =
      Format(
          "{\"windows\": %zu, \"context\": %zu, \"length\": %llu, \"memory_bytes\": %llu, "
          "\"questions\": %zu,\n \"base\": ",
          table.windows, table.context, static_cast<unsigned long long>(table.length),
          static_cast<unsigned long long>(table.memory_bytes), table.questions) +
      RowJson(table.base, true) + ",\n \"rows\": [";
  for (size_t i = 0; i < table.rows.size(); ++i)
    text += (i == 0 ? "\n  " : ",\n  ") + RowJson(table.rows[i], false);
  return text + "]}\n";
}

std::string JsonNumber(double value) {
  return std::isfinite(value) ? Format("%.9g", value) : "null";
}

std::string PerplexityJson(const Perplexity& perplexity) {
  std::string text = "\"perplexity\": " + JsonNumber(perplexity.Value()) +
                     ", \"standard_error\": " + JsonNumber(perplexity.StandardError()) +
                     ", \"mean_nll\": " + JsonNumber(perplexity.MeanNll()) +
                     ", \"window_mean_nll\": [";
  for (const double mean : perplexity.window_mean_nll())
    text += (text.back() == '[' ? "" : ", ") + JsonNumber(mean);
  return text + "]";
}

}  // namespace eval
