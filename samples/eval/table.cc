// Numbers are shown to as many digits as their errors allow.
#include "eval/table.h"

#include <cmath>

#include "common/text.h"

namespace eval {
namespace {

using tools::Format;

std::string MarkdownRow(const Table& table, const TableRow& row, bool is_base) {
  std::string text = "| " + row.weights + " | " + row.kv_dtype +
                     Format(" | %.2f | ", row.bytes_per_weight) + tools::Bytes(row.weights_bytes) +
                     Format(" | %llu (%.2fx) | ", static_cast<unsigned long long>(row.sequences),
                            row.sequence_gain);
  if (table.has_speed) text += Format("%.0f | %.0f | ", row.speed.prefill, row.speed.decode);
  text += Format("%.4f | ", row.perplexity.Value());
  text += is_base ? "base | base |"
                  : Format("%.2e | %.2f %% |", row.divergence.MeanKl(),
                           100 * row.divergence.Top1Agreement());
  if (table.questions == 0) return text + "\n";
  text += Format(" %.1f %%", 100 * row.accuracy);
  return text + (is_base ? " |\n" : Format(" (%.1f %%) |\n", 100 * row.picks_alike));
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
  std::string text = Format(
      "%zu windows of %zu tokens; sequences of %llu tokens in %s", table.windows, table.context,
      static_cast<unsigned long long>(table.length), tools::Bytes(table.memory_bytes).c_str());
  if (table.questions != 0) text += Format("; %zu questions", table.questions);
  text += "\n\n| weights | KV | bytes a weight | weights in memory | sequences (of KV f16) |";
  std::string rule = "\n|---|---|---|---|---|";
  if (table.has_speed) {
    text += " prefill tok/s | decode tok/s |";
    rule += "---|---|";
  }
  text += " perplexity | mean KL | same top-1 |";
  rule += "---|---|---|";
  if (table.questions != 0) {
    text += " choices right (as base) |";
    rule += "---|";
  }
  text += rule + "\n" + MarkdownRow(table, table.base, true);
  for (const TableRow& row : table.rows) text += MarkdownRow(table, row, false);
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
