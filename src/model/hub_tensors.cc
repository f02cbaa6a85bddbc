// Names are matched by their shape, numbers replaced by {}: one look-up a tensor, however many
// layers and experts there are.
#include "src/model/hub_tensors.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_input_order.h"
#include "src/model/hub_present.h"

namespace llm {
namespace {

constexpr HubTensor kSharedTensors[] = {
    {"model.embed_tokens", "token_embd"},
    {"model.norm", "output_norm"},
    {"lm_head", "output"},
    {"model.layers.{}.input_layernorm", "blk.{}.attn_norm"},
    {"model.layers.{}.self_attn.q_proj", "blk.{}.attn_q"},
    {"model.layers.{}.self_attn.k_proj", "blk.{}.attn_k"},
    {"model.layers.{}.self_attn.v_proj", "blk.{}.attn_v"},
    {"model.layers.{}.self_attn.o_proj", "blk.{}.attn_output"},
    {"model.layers.{}.mlp.gate_proj", "blk.{}.ffn_gate"},
    {"model.layers.{}.mlp.up_proj", "blk.{}.ffn_up"},
    {"model.layers.{}.mlp.down_proj", "blk.{}.ffn_down"},
    {"model.layers.{}.self_attn.rotary_emb.inv_freq", nullptr, HubForm::kUnused},
};

// What may follow the name of a row; all but the first three of layers in low bits. input_scale and
// input_global_scale are for activations, which this library holds in its own way.
constexpr absl::string_view kEndings[] = {"",
                                          ".weight",
                                          ".bias",
                                          ".qweight",
                                          ".weight_packed",
                                          ".compressed",
                                          ".qzeros",
                                          ".scales",
                                          ".g_idx",
                                          ".weight_scale",
                                          ".weight_scale_inv",
                                          ".weight_shape",
                                          ".weight_zero_point",
                                          ".weight_g_idx",
                                          ".weight_global_scale",
                                          ".input_scale",
                                          ".input_global_scale",
                                          ".bitmask",
                                          ".shape"};
enum class Ending { kItself, kCodes, kBesideCodes };

Ending Meaning(absl::string_view ending) {
  if (ending == ".qweight" || ending == ".weight_packed" || ending == ".compressed") {
    return Ending::kCodes;
  }
  const bool itself = ending.empty() || ending == ".weight" || ending == ".bias";
  return itself ? Ending::kItself : Ending::kBesideCodes;
}

// "model.layers.{}.mlp.experts.{}.w1.weight" and {3, 5}.
struct NameShape {
  std::string text;
  std::vector<int> numbers;
};

NameShape ShapeOf(absl::string_view name) {
  NameShape shape;
  for (const absl::string_view word : absl::StrSplit(name, '.')) {
    if (!shape.text.empty()) shape.text += '.';
    int number = 0;
    // "01" is no number, lest two names mean one tensor.
    const bool plain = word.size() <= 6 && absl::SimpleAtoi(word, &number) &&
                       word == absl::StrCat(number) && number >= 0;
    if (plain) shape.numbers.push_back(number);
    // A name that spells the place of a number has none there.
    absl::StrAppend(&shape.text, plain ? "{}" : word == "{}" ? "?" : word);
  }
  return shape;
}

absl::Status TensorError(const SafeTensor& tensor, const absl::Status& status) {
  return At(absl::StrCat("tensor ", Printable(tensor.name), " of ", tensor.file->name()), status);
}

class Mapper {
 public:
  Mapper(const HubModel& model, const HubExtras& extras, const SafetensorsSet& set)
      : model_(model), extras_(extras), set_(set) {
    for (const HubTensor& row : kSharedTensors) rows_.emplace(row.hub, &row);
    for (const HubTensor& row : model.tensors) rows_.emplace(row.hub, &row);
  }

  absl::Status Add(const SafeTensor& tensor);
  absl::Status Finish();
  std::vector<HubTensorParts> Take() { return std::move(tensors_); }

 private:
  struct Expert {
    const SafeTensor* tensor;
    HubPresented presented;
  };
  struct Experts {
    HubTensorParts all;
    std::map<int, Expert> each;
  };

  using Rows = std::multimap<absl::string_view, const HubTensor*>;

  std::pair<Rows::const_iterator, Rows::const_iterator> FindRows(const std::string& shape,
                                                                 absl::string_view* suffix) const;
  bool IsOfDraftingLayer(const NameShape& shape) const;
  absl::Status AddAs(const HubTensor& row, const SafeTensor& tensor, const NameShape& shape,
                     absl::string_view suffix);
  absl::Status Present(const SafeTensor& tensor, HubForm form, std::string name);
  void AddOrders(const HubTensorParts& weight,
                 std::vector<std::shared_ptr<const DerivedBytes>> orders);
  absl::Status AddExpert(const SafeTensor& tensor, HubForm form, int expert,
                         const std::string& name);
  absl::Status JoinExperts(Experts* experts);
  void AddVector(const std::string& name, const std::vector<float>& values);
  absl::Status CheckBias(const HubTensorParts& tensor);
  std::string CompanionOf(const std::string& name) const;

  const HubModel& model_;
  const HubExtras& extras_;
  const SafetensorsSet& set_;
  Rows rows_;                               // by hub name
  std::map<std::string, Experts> experts_;  // by GGUF name
  std::vector<HubTensorParts> tensors_;
};

std::pair<Mapper::Rows::const_iterator, Mapper::Rows::const_iterator> Mapper::FindRows(
    const std::string& shape, absl::string_view* suffix) const {
  const bool quantized = extras_.quantization != HubQuantization::kNone;
  for (const absl::string_view ending : kEndings) {
    if (!absl::EndsWith(shape, ending)) continue;
    if (!quantized && Meaning(ending) != Ending::kItself) continue;
    const auto rows =
        rows_.equal_range(absl::string_view(shape).substr(0, shape.size() - ending.size()));
    *suffix = ending;
    if (rows.first != rows.second) return rows;
    if (Meaning(ending) != Ending::kBesideCodes) continue;
    // Beside a tensor whose row says ".weight".
    const std::string weight = absl::StrCat(absl::StripSuffix(shape, ending), ".weight");
    if (rows_.count(weight) != 0) return rows_.equal_range(weight);
  }
  return {rows_.end(), rows_.end()};
}

absl::Status Mapper::Add(const SafeTensor& tensor) {
  const NameShape shape = ShapeOf(tensor.name);
  if (IsOfDraftingLayer(shape)) return absl::OkStatus();
  absl::string_view suffix;
  const auto rows = FindRows(shape.text, &suffix);
  if (rows.first == rows.second) {
    return absl::UnimplementedError(absl::StrCat("not known to ", model_.model_type));
  }
  for (auto row = rows.first; row != rows.second; ++row) {
    LLM_RETURN_IF_ERROR(AddAs(*row->second, tensor, shape, suffix));
  }
  return absl::OkStatus();
}

// Layers behind the last one that only draft tokens.
bool Mapper::IsOfDraftingLayer(const NameShape& shape) const {
  return absl::StartsWith(shape.text, "model.layers.{}.") &&
         shape.numbers[0] >= extras_.num_layers &&
         shape.numbers[0] - extras_.num_layers < extras_.num_drafting_layers;
}

absl::Status Mapper::AddAs(const HubTensor& row, const SafeTensor& tensor, const NameShape& shape,
                           absl::string_view suffix) {
  const Ending ending = Meaning(suffix);
  if (row.form == HubForm::kUnused || ending == Ending::kBesideCodes) return absl::OkStatus();
  const bool is_low = tensor.type == SafeType::kI8 || tensor.type == SafeType::kF8E4M3;
  const bool low_bits =
      extras_.quantization != HubQuantization::kNone && (ending == Ending::kCodes || is_low);
  const bool of_heads = row.form == HubForm::kKeyRows || row.form == HubForm::kValueRows;
  const bool may_be_low = row.form == HubForm::kPlain || row.form == HubForm::kExpert ||
                          (of_heads && extras_.quantization == HubQuantization::kF8);
  if (low_bits && !may_be_low) {
    return absl::UnimplementedError("low bits are not supported in this tensor");
  }
  std::string name = absl::StrCat(row.gguf, ending == Ending::kCodes ? ".weight" : suffix);
  if (!shape.numbers.empty()) {
    name = absl::StrReplaceAll(name, {{"{}", absl::StrCat(shape.numbers[0])}});
  }
  if (row.form == HubForm::kExpert) {
    const HubForm form = low_bits ? HubForm::kQuantized : HubForm::kPlain;
    return AddExpert(tensor, form, shape.numbers[1], name);
  }
  if (name == "output.weight" && extras_.tied_embeddings) return absl::OkStatus();
  return Present(tensor, low_bits && !of_heads ? HubForm::kQuantized : row.form, std::move(name));
}

absl::Status Mapper::Present(const SafeTensor& tensor, HubForm form, std::string name) {
  HubTensorParts parts;
  parts.name = std::move(name);
  parts.hub_name = tensor.name;
  if (form == HubForm::kPlain && model_.norms_lack_one &&
      absl::EndsWith(parts.name, "norm.weight")) {
    form = HubForm::kOnePlus;
  }
  LLM_ASSIGN_OR_RETURN(HubPresented presented, PresentTensor(tensor, form, extras_, set_));
  parts.format = presented.format;
  parts.shape = std::move(presented.shape);
  parts.size_bytes = presented.part.size_bytes;
  parts.parts.push_back(std::move(presented.part));
  LLM_RETURN_IF_ERROR(CheckBias(parts));
  if (presented.order != nullptr) AddOrders(parts, {std::move(presented.order)});
  tensors_.push_back(std::move(parts));
  return absl::OkStatus();
}

absl::Status Mapper::CheckBias(const HubTensorParts& tensor) {
  const absl::string_view name = tensor.name;
  if (!absl::EndsWith(name, ".bias")) return absl::OkStatus();
  const std::vector<std::string> words = absl::StrSplit(name, '.');
  if (words.size() > 2 && extras_.biases.count(words[2]) != 0) return absl::OkStatus();
  for (const auto& [beside, companion] : extras_.companions) {
    if (absl::EndsWith(name, "." + companion)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError("there, although the config says that the layer has no bias");
}

// "blk.0.attn_q.order" beside "blk.0.attn_q.weight": one order, or one for each expert.
void Mapper::AddOrders(const HubTensorParts& weight,
                       std::vector<std::shared_ptr<const DerivedBytes>> orders) {
  HubTensorParts parts;
  parts.name = absl::StrCat(absl::StripSuffix(weight.name, ".weight"), ".order");
  parts.hub_name = weight.hub_name;
  parts.shape = {weight.shape.back()};
  if (weight.shape.size() > 2) parts.shape.insert(parts.shape.begin(), weight.shape[0]);
  const auto order_bytes = static_cast<uint64_t>(weight.shape.back()) * sizeof(float);
  for (std::shared_ptr<const DerivedBytes>& order : orders) {
    parts.parts.push_back({.begin = parts.size_bytes,
                           .size_bytes = order_bytes,
                           .file = nullptr,
                           .offset = 0,
                           .derived = std::move(order)});
    parts.size_bytes += order_bytes;
  }
  tensors_.push_back(std::move(parts));
}

absl::Status Mapper::AddExpert(const SafeTensor& tensor, HubForm form, int expert,
                               const std::string& name) {
  LLM_ASSIGN_OR_RETURN(HubPresented presented, PresentTensor(tensor, form, extras_, set_));
  Experts& experts = experts_[name];
  if (!experts.each.emplace(expert, Expert{&tensor, std::move(presented)}).second) {
    return absl::InvalidArgumentError(absl::StrCat("expert ", expert, " is there twice"));
  }
  return absl::OkStatus();
}

// In their order, without a gap; all of one kind.
absl::Status Mapper::JoinExperts(Experts* experts) {
  const Expert& first = experts->each.begin()->second;
  const std::string& first_name = first.tensor->name;
  HubTensorParts& all = experts->all;
  all.hub_name = first_name;
  all.format = first.presented.format;
  all.shape = first.presented.shape;
  all.shape.insert(all.shape.begin(), static_cast<int64_t>(experts->each.size()));
  int expected = 0;
  bool ordered = false;
  std::vector<std::shared_ptr<const DerivedBytes>> orders;
  for (const auto& [number, expert] : experts->each) {
    const HubPresented& presented = expert.presented;
    if (number != expected++) {
      return TensorError(*first.tensor, absl::InvalidArgumentError(
                                            absl::StrCat("expert ", expected - 1, " is missing")));
    }
    if (presented.format != all.format || presented.shape != first.presented.shape) {
      return TensorError(*expert.tensor,
                         absl::InvalidArgumentError(absl::StrCat(
                             "its dtype or shape is not that of tensor ", Printable(first_name))));
    }
    all.parts.push_back(presented.part);
    all.parts.back().begin = all.size_bytes;
    all.size_bytes += presented.part.size_bytes;
    ordered = ordered || presented.order != nullptr;
    orders.push_back(presented.order);
  }
  if (ordered) {
    const auto natural = NaturalOrder(first.presented.shape.back());
    std::replace(orders.begin(), orders.end(), std::shared_ptr<const DerivedBytes>(), natural);
    AddOrders(all, std::move(orders));
  }
  tensors_.push_back(std::move(all));
  return absl::OkStatus();
}

void Mapper::AddVector(const std::string& name, const std::vector<float>& values) {
  HubTensorParts parts;
  parts.name = name;
  parts.hub_name = "config.json";
  parts.shape = {static_cast<int64_t>(values.size())};
  parts.size_bytes = values.size() * sizeof(float);
  std::string bytes(reinterpret_cast<const char*>(values.data()), parts.size_bytes);
  parts.parts.push_back({.begin = 0,
                         .size_bytes = parts.size_bytes,
                         .file = nullptr,
                         .offset = 0,
                         .derived = std::make_shared<HeldBytes>(std::move(bytes))});
  tensors_.push_back(std::move(parts));
}

// What must be there beside a weight of a layer; empty: nothing.
std::string Mapper::CompanionOf(const std::string& name) const {
  const std::vector<std::string> words = absl::StrSplit(name, '.');
  if (words.size() != 4 || words[3] != "weight") return "";
  const std::string layer = absl::StrCat(words[0], ".", words[1], ".");
  if (extras_.biases.count(words[2]) != 0) return absl::StrCat(layer, words[2], ".bias");
  const auto companion = extras_.companions.find(words[2]);
  return companion == extras_.companions.end() ? "" : layer + companion->second;
}

absl::Status Mapper::Finish() {
  for (auto& [name, experts] : experts_) {
    experts.all.name = name;
    LLM_RETURN_IF_ERROR(JoinExperts(&experts));
  }
  for (const auto& [name, values] : extras_.vectors) AddVector(name, values);
  std::set<std::string> names;
  for (const HubTensorParts& tensor : tensors_) names.insert(tensor.name);
  if (!extras_.tied_embeddings && names.count("output.weight") == 0) {
    return absl::NotFoundError("tensor lm_head.weight: missing, tie_word_embeddings is false");
  }
  for (const HubTensorParts& tensor : tensors_) {
    const std::string companion = CompanionOf(tensor.name);
    if (companion.empty() || names.count(companion) != 0) continue;
    return absl::NotFoundError(absl::StrCat("a bias beside tensor ", Printable(tensor.hub_name),
                                            " (", companion, "): missing, although the config ",
                                            "announces it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<HubTensorParts>> MapHubTensors(const HubModel& model,
                                                          const HubExtras& extras,
                                                          const SafetensorsSet& set) {
  Mapper mapper(model, extras, set);
  for (const auto& [name, tensor] : set.tensors) {
    if (absl::Status added = mapper.Add(tensor); !added.ok()) return TensorError(tensor, added);
  }
  LLM_RETURN_IF_ERROR(mapper.Finish());
  return mapper.Take();
}

}  // namespace llm
