// Names are matched by their shape, numbers replaced by {}: one look-up a tensor, however many
// layers and experts there are.
#include "src/model/hub_tensors.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

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
    absl::StrAppend(&shape.text, plain ? "{}" : word);
  }
  return shape;
}

absl::Status TensorError(const SafeTensor& tensor, const absl::Status& status) {
  return At(absl::StrCat("tensor ", Printable(tensor.name), " of ", tensor.file->name()), status);
}

absl::StatusOr<WeightFormat> FormatOf(SafeType type) {
  switch (type) {
    case SafeType::kF32:
      return WeightFormat::kF32;
    case SafeType::kF16:
      return WeightFormat::kF16;
    case SafeType::kBF16:
      return WeightFormat::kBF16;
    default:
      return absl::UnimplementedError(
          absl::StrCat("dtype ", SafeTypeName(type), " is not supported for weights"));
  }
}

// A stored vector w, as 1 + w in f32.
class PlusOne final : public DerivedBytes {
 public:
  PlusOne(const SafeTensor& tensor, WeightFormat format)
      : file_(*tensor.file), offset_(tensor.offset), format_(GetWeightFormat(format)) {}

  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    const uint64_t begin = offset / sizeof(float);
    const uint64_t count = (offset + size + sizeof(float) - 1) / sizeof(float) - begin;
    const auto block_bytes = static_cast<uint64_t>(format_.block_bytes);
    std::string stored(static_cast<size_t>(count * block_bytes), '\0');
    LLM_RETURN_IF_ERROR(file_.Read(offset_ + begin * block_bytes, stored.size(), stored.data()));
    std::vector<float> values(static_cast<size_t>(count));
    format_.decode(stored.data(), static_cast<int64_t>(count), values.data());
    for (float& value : values) value += 1.0f;
    std::memcpy(dst, reinterpret_cast<const char*>(values.data()) + offset % sizeof(float),
                static_cast<size_t>(size));
    return absl::OkStatus();
  }

 private:
  const ModelFile& file_;
  const uint64_t offset_;
  const WeightFormatInfo& format_;
};

class Mapper {
 public:
  Mapper(const HubModel& model, const HubExtras& extras) : model_(model), extras_(extras) {
    for (const HubTensor& row : kSharedTensors) rows_[row.hub] = &row;
    for (const HubTensor& row : model.tensors) rows_[row.hub] = &row;
  }

  absl::Status Add(const SafeTensor& tensor);
  absl::Status Finish();
  std::vector<HubTensorParts> Take() { return std::move(tensors_); }

 private:
  struct Experts {
    HubTensorParts all;
    std::map<int, const SafeTensor*> each;
  };

  const HubTensor* FindRow(const std::string& shape, absl::string_view* suffix) const;
  absl::Status Present(const SafeTensor& tensor, std::string name);
  absl::Status AddExpert(const SafeTensor& tensor, int expert, const std::string& name);
  absl::Status JoinExperts(Experts* experts);
  absl::Status CheckBias(const HubTensorParts& tensor);

  const HubModel& model_;
  const HubExtras& extras_;
  std::map<absl::string_view, const HubTensor*> rows_;
  std::map<std::string, Experts> experts_;  // by GGUF name
  std::vector<HubTensorParts> tensors_;
};

const HubTensor* Mapper::FindRow(const std::string& shape, absl::string_view* suffix) const {
  if (const auto exact = rows_.find(shape); exact != rows_.end()) return exact->second;
  for (const absl::string_view ending : {".weight", ".bias"}) {
    if (!absl::EndsWith(shape, ending)) continue;
    const auto row = rows_.find(absl::string_view(shape).substr(0, shape.size() - ending.size()));
    if (row == rows_.end()) continue;
    *suffix = ending;
    return row->second;
  }
  return nullptr;
}

absl::Status Mapper::Add(const SafeTensor& tensor) {
  const NameShape shape = ShapeOf(tensor.name);
  absl::string_view suffix;
  const HubTensor* row = FindRow(shape.text, &suffix);
  if (row == nullptr) {
    return absl::UnimplementedError(absl::StrCat("not known to ", model_.model_type));
  }
  if (row->form == HubForm::kUnused) return absl::OkStatus();
  std::string name = absl::StrCat(row->gguf, suffix);
  if (!shape.numbers.empty()) {
    name = absl::StrReplaceAll(name, {{"{}", absl::StrCat(shape.numbers[0])}});
  }
  if (row->form == HubForm::kExpert) return AddExpert(tensor, shape.numbers[1], name);
  if (name == "output.weight" && extras_.tied_embeddings) return absl::OkStatus();
  return Present(tensor, std::move(name));
}

absl::Status Mapper::Present(const SafeTensor& tensor, std::string name) {
  HubTensorParts parts;
  parts.name = std::move(name);
  parts.hub_name = tensor.name;
  parts.shape = tensor.shape;
  LLM_ASSIGN_OR_RETURN(parts.format, FormatOf(tensor.type));
  FilePart part = {.size_bytes = tensor.size_bytes, .file = tensor.file, .offset = tensor.offset};
  if (model_.norms_lack_one && absl::EndsWith(parts.name, "norm.weight")) {
    part.derived = std::make_shared<PlusOne>(tensor, parts.format);
    part.size_bytes = tensor.size_bytes / SafeTypeBytes(tensor.type) * sizeof(float);
    parts.format = WeightFormat::kF32;
  }
  parts.size_bytes = part.size_bytes;
  parts.parts.push_back(std::move(part));
  LLM_RETURN_IF_ERROR(CheckBias(parts));
  tensors_.push_back(std::move(parts));
  return absl::OkStatus();
}

absl::Status Mapper::CheckBias(const HubTensorParts& tensor) {
  const absl::string_view name = tensor.name;
  if (!absl::EndsWith(name, ".bias")) return absl::OkStatus();
  const std::vector<absl::string_view> words = absl::StrSplit(name, '.');
  if (words.size() > 2 && extras_.biases.count(std::string(words[2])) != 0) return absl::OkStatus();
  return absl::InvalidArgumentError("there, although the config says that the layer has no bias");
}

absl::Status Mapper::AddExpert(const SafeTensor& tensor, int expert, const std::string& name) {
  Experts& experts = experts_[name];
  if (!experts.each.emplace(expert, &tensor).second) {
    return absl::InvalidArgumentError(absl::StrCat("expert ", expert, " is there twice"));
  }
  return absl::OkStatus();
}

// In their order, without a gap; all of one kind.
absl::Status Mapper::JoinExperts(Experts* experts) {
  const SafeTensor& first = *experts->each.begin()->second;
  HubTensorParts& all = experts->all;
  all.hub_name = first.name;
  LLM_ASSIGN_OR_RETURN(all.format, FormatOf(first.type));
  all.shape.push_back(static_cast<int64_t>(experts->each.size()));
  all.shape.insert(all.shape.end(), first.shape.begin(), first.shape.end());
  int expected = 0;
  for (const auto& [expert, tensor] : experts->each) {
    if (expert != expected++) {
      return TensorError(
          first, absl::InvalidArgumentError(absl::StrCat("expert ", expected - 1, " is missing")));
    }
    if (tensor->type != first.type || tensor->shape != first.shape) {
      return TensorError(*tensor,
                         absl::InvalidArgumentError(absl::StrCat(
                             "its dtype or shape is not that of tensor ", Printable(first.name))));
    }
    all.parts.push_back({.begin = all.size_bytes,
                         .size_bytes = tensor->size_bytes,
                         .file = tensor->file,
                         .offset = tensor->offset});
    all.size_bytes += tensor->size_bytes;
  }
  tensors_.push_back(std::move(all));
  return absl::OkStatus();
}

absl::Status Mapper::Finish() {
  for (auto& [name, experts] : experts_) {
    experts.all.name = name;
    LLM_RETURN_IF_ERROR(JoinExperts(&experts));
  }
  std::set<std::string> names;
  for (const HubTensorParts& tensor : tensors_) names.insert(tensor.name);
  if (!extras_.tied_embeddings && names.count("output.weight") == 0) {
    return absl::NotFoundError("tensor lm_head.weight: missing, tie_word_embeddings is false");
  }
  for (const HubTensorParts& tensor : tensors_) {
    const std::vector<absl::string_view> words = absl::StrSplit(tensor.name, '.');
    if (words.size() != 4 || words[3] != "weight") continue;
    const std::string bias = absl::StrCat(words[0], ".", words[1], ".", words[2], ".bias");
    if (extras_.biases.count(std::string(words[2])) == 0 || names.count(bias) != 0) continue;
    return absl::NotFoundError(absl::StrCat("the bias of tensor ", Printable(tensor.hub_name),
                                            ": missing, although the config announces it"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<HubTensorParts>> MapHubTensors(const HubModel& model,
                                                          const HubExtras& extras,
                                                          const SafetensorsSet& set) {
  Mapper mapper(model, extras);
  for (const auto& [name, tensor] : set.tensors) {
    if (absl::Status added = mapper.Add(tensor); !added.ok()) return TensorError(tensor, added);
  }
  LLM_RETURN_IF_ERROR(mapper.Finish());
  return mapper.Take();
}

}  // namespace llm
