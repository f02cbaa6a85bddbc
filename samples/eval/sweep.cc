// The base is scored again with each weights, so that their rows meet its logits window by window.
#include "eval/sweep.h"

#include <algorithm>
#include <map>

#include "common/text.h"
#include "eval/choices.h"
#include "inspect/fit.h"

namespace eval {
namespace {

// As many sequences as the default memory holds with KV f16: gains are then whole per cents.
constexpr uint64_t kF16Sequences = 100;

struct WeightsCount {
  uint64_t weights = 0;
  std::string main_type;  // that of most bytes
};

WeightsCount CountWeights(const inlay::Model& model) {
  WeightsCount count;
  std::map<std::string, uint64_t> bytes;
  const llm_model_info info = tools::ModelInfo(model);
  for (uint64_t i = 0; i < info.num_tensors; ++i) {
    llm_tensor_info tensor;
    tools::Check(model.GetTensor(i, &tensor));
    uint64_t size = 1;
    for (uint32_t d = 0; d < tensor.num_dims; ++d) size *= tensor.shape[d];
    count.weights += size;
    bytes[std::string(inlay::View(tensor.type))] += tensor.size_bytes;
  }
  uint64_t most = 0;
  for (const auto& [type, size] : bytes) {
    if (size > most) count.main_type = type;
    most = std::max(most, size);
  }
  return count;
}

tools::OpenFlags WithKv(tools::OpenFlags flags, const std::string& kv_dtype) {
  flags.kv_dtype = kv_dtype;
  return flags;
}

class Sweep {
 public:
  Sweep(const Flags& flags, const std::vector<std::vector<int32_t>>& windows, Configuration* base)
      : flags_(flags), windows_(windows), base_(base) {
    table_.windows = windows.size();
    table_.context = flags.context;
    table_.length = flags.length;
    table_.has_speed = !flags.no_speed;
    table_.memory_bytes = flags.memory_bytes;
    if (table_.memory_bytes == 0)
      table_.memory_bytes =
          inspect::BytesOf(WithKv(flags.open, "f16"), flags.length, kF16Sequences);
    if (!flags.choices_path.empty())
      items_ = MakeItems(ParseChoices(tools::ReadFile(flags.choices_path), flags.choices_path),
                         base->model(), flags.context);
    table_.questions = items_.size();
  }

  Table Run() {
    for (const WeightsFlags& weights : flags_.weights) MeasureWeights(weights);
    return std::move(table_);
  }

 private:
  void MeasureWeights(const WeightsFlags& weights) {
    std::vector<std::unique_ptr<Configuration>> configurations;
    std::vector<Candidate> candidates;
    for (const std::string& kv_dtype : flags_.kv_dtypes) {
      const Configuration* other = configurations.empty() ? base_ : configurations[0].get();
      configurations.push_back(
          std::make_unique<Configuration>(WithKv(weights.open, kv_dtype), flags_.context, other));
      candidates.push_back({configurations.back().get(), {}, {}});
    }
    Candidate base = {base_, {}, {}};
    ScoreWindows(windows_, &base, &candidates);
    if (table_.rows.empty()) {
      base_picks_ = PickChoices(items_, base_);
      table_.base = MakeRow(base, flags_.base, "", base_picks_);
    }
    for (const Candidate& candidate : candidates) {
      TableRow row = MakeRow(candidate, candidate.configuration->flags(), weights.name,
                             PickChoices(items_, candidate.configuration));
      row.nll_difference = Difference(base.perplexity, candidate.perplexity);
      table_.rows.push_back(std::move(row));
    }
  }

  TableRow MakeRow(const Candidate& candidate, const tools::OpenFlags& flags,
                   const std::string& name, const std::vector<size_t>& picks) {
    Configuration& configuration = *candidate.configuration;
    const WeightsCount count = CountWeights(configuration.model());
    TableRow row;
    row.weights = !name.empty()
                      ? name
                      : count.main_type + (flags.float_activations ? ", float activations" : "");
    row.kv_dtype = flags.kv_dtype;
    row.configuration = configuration.Description();
    row.weights_bytes = tools::ModelInfo(configuration.model()).weights_bytes;
    row.bytes_per_weight =
        static_cast<double>(row.weights_bytes) / static_cast<double>(count.weights);
    const uint64_t memory = table_.memory_bytes, length = flags_.length;
    row.sequences = inspect::FitOne(flags, length, memory).sequences;
    const uint64_t f16 = inspect::FitOne(WithKv(flags, "f16"), length, memory).sequences;
    row.sequence_gain =
        static_cast<double>(row.sequences) / static_cast<double>(std::max<uint64_t>(f16, 1));
    if (!flags_.no_speed) row.speed = configuration.Measure(windows_[0]);
    row.perplexity = candidate.perplexity;
    row.divergence = candidate.divergence;
    row.accuracy = Accuracy(items_, picks);
    row.picks_alike = ShareAlike(base_picks_, picks);
    return row;
  }

  const Flags& flags_;
  const std::vector<std::vector<int32_t>>& windows_;
  Configuration* base_;
  std::vector<ChoiceItem> items_;
  std::vector<size_t> base_picks_;
  Table table_;
};

}  // namespace

Table MeasureTable(const Flags& flags, const std::vector<std::vector<int32_t>>& windows,
                   Configuration* base) {
  return Sweep(flags, windows, base).Run();
}

}  // namespace eval
