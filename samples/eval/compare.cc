// Sums are in double: a hundred thousand terms of a row are added up.
#include "eval/compare.h"

#include <algorithm>
#include <cmath>

#include "common/text.h"

namespace eval {
namespace {

bool SameModel(const tools::OpenFlags& a, const tools::OpenFlags& b) {
  return a.model == b.model && a.kernels == b.kernels &&
         a.float_activations == b.float_activations && a.threads == b.threads &&
         a.weights == b.weights;
}

int32_t CallOnRow(void* user_data, const llm_score_row* row) {
  (*static_cast<const OnRow*>(user_data))(*row);
  return 0;
}

double LogSumExp(const float* logits, size_t size) {
  const double most = static_cast<double>(*std::max_element(logits, logits + size));
  double sum = 0;
  for (size_t i = 0; i < size; ++i) sum += std::exp(static_cast<double>(logits[i]) - most);
  return most + std::log(sum);
}

// NaN for fewer than two values.
double StandardErrorOfMean(const std::vector<double>& values) {
  const double n = static_cast<double>(values.size());
  if (n < 2) return NAN;
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  for (const double value : values) squares += (value - sum / n) * (value - sum / n);
  return std::sqrt(squares / (n - 1) / n);
}

}  // namespace

Configuration::Configuration(const tools::OpenFlags& flags, size_t context,
                             const Configuration* other)
    : flags_(flags) {
  if (other != nullptr && SameModel(flags, other->flags_)) {
    model_ = other->model_;
  } else {
    model_ = std::make_shared<const inlay::Model>(tools::OpenModel(flags));
  }
  llm_engine_options options = tools::EngineOptions(flags);
  options.prefix_cache = LLM_OFF;
  // The rows of logits that a step may have come with the sequences: 64 keep steps long.
  options.max_sequences = 64;
  options.max_context_tokens = static_cast<uint32_t>(context);
  options.kv_tokens = context + 2 * std::max(flags.block_size, 16u) + 256;
  tools::Check(inlay::Engine::Open(*model_, &options, &engine_));
}

std::vector<float> Configuration::Score(const std::vector<int32_t>& window, const OnRow& on_row) {
  llm_score_request request;
  llm_score_request_init(&request);
  request.ids = window.data();
  request.num_ids = window.size();
  request.first = window.size() / 2;
  if (on_row) {
    request.on_row = &CallOnRow;
    request.user_data = const_cast<OnRow*>(&on_row);
  }
  std::vector<float> logprobs(window.size() - window.size() / 2);
  size_t count = 0;
  tools::Check(llm_score(engine_.get(), &request, logprobs.data(), logprobs.size(), &count));
  if (count != logprobs.size()) tools::Fail("a score came back with another number of tokens");
  return logprobs;
}

std::string Configuration::Description() const {
  const llm_model_info info = tools::ModelInfo(*model_);
  return "kv-dtype " + flags_.kv_dtype + ", " + (flags_.float_activations ? "f32" : "int8") +
         " activations, kernels " + std::string(inlay::View(info.kernels));
}

void Perplexity::AddWindow(const std::vector<float>& logprobs) {
  double sum = 0;
  for (const float logprob : logprobs) sum -= static_cast<double>(logprob);
  sum_ += sum;
  count_ += logprobs.size();
  window_means_.push_back(sum / static_cast<double>(logprobs.size()));
}

double Perplexity::Value() const { return std::exp(MeanNll()); }

double Perplexity::StandardError() const { return Value() * StandardErrorOfMean(window_means_); }

NllDifference Difference(const Perplexity& base, const Perplexity& other) {
  std::vector<double> differences = other.window_mean_nll();
  for (size_t i = 0; i < differences.size(); ++i) differences[i] -= base.window_mean_nll()[i];
  return {other.MeanNll() - base.MeanNll(), StandardErrorOfMean(differences)};
}

void Divergence::BeginWindow(size_t num_rows, size_t vocab_size) {
  base_.resize(num_rows * vocab_size);
  vocab_size_ = vocab_size;
  next_base_ = next_other_ = 0;
}

void Divergence::AddBase(const llm_score_row& row) {
  if (row.num_logits != vocab_size_ || (next_base_ + 1) * vocab_size_ > base_.size())
    tools::Fail("more rows or logits than a window has");
  std::copy_n(row.logits, vocab_size_,
              base_.begin() + static_cast<std::ptrdiff_t>(next_base_++ * vocab_size_));
}

void Divergence::AddOther(const llm_score_row& row) {
  if (row.num_logits != vocab_size_ || next_other_ >= next_base_)
    tools::Fail("the configurations differ in vocabulary or rows");
  const float* p = base_.data() + next_other_++ * vocab_size_;
  const float* q = row.logits;
  const double p_norm = LogSumExp(p, vocab_size_), q_norm = LogSumExp(q, vocab_size_);
  double kl = 0;
  for (size_t i = 0; i < vocab_size_; ++i) {
    const double log_p = static_cast<double>(p[i]) - p_norm;
    kl += std::exp(log_p) * (log_p - (static_cast<double>(q[i]) - q_norm));
  }
  kl_.push_back(std::max(kl, 0.0));  // rounding alone takes it below
  agreed_ += std::max_element(p, p + vocab_size_) - p == std::max_element(q, q + vocab_size_) - q;
}

double Divergence::MeanKl() const {
  double sum = 0;
  for (const double kl : kl_) sum += kl;
  return kl_.empty() ? NAN : sum / static_cast<double>(kl_.size());
}

double Divergence::QuantileKl(double quantile) const {
  if (kl_.empty()) return NAN;
  std::vector<double> sorted = kl_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(quantile * static_cast<double>(sorted.size() - 1))];
}

double Divergence::Top1Agreement() const {
  return kl_.empty() ? NAN : static_cast<double>(agreed_) / static_cast<double>(kl_.size());
}

}  // namespace eval
