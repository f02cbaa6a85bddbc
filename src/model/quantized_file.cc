// A new header with the old metadata, then the data: kept tensors are parts of the old file, the
// others are encoded when they are read.
#include "src/model/quantized_file.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/loader/composed_file.h"
#include "src/loader/gguf_writer.h"
#include "src/loader/pack_reader.h"
#include "src/model/encoded_rows.h"
#include "src/model/file_type.h"
#include "src/model/model_config.h"
#include "src/model/tensor_roles.h"

namespace llm {
namespace {

bool IsFloat(WeightFormat format) {
  return format == WeightFormat::kF32 || format == WeightFormat::kF16 ||
         format == WeightFormat::kBF16;
}

int64_t NumWeights(const TensorInfo& tensor) {
  int64_t count = 1;
  for (const int64_t size : tensor.shape) count *= size;
  return count;
}

std::optional<Quantization> Wanted(TensorRole role, const QuantizeOptions& options) {
  switch (role) {
    case TensorRole::kLinear:
      return options.linear;
    case TensorRole::kExperts:
      return options.experts;
    case TensorRole::kEmbedding:
      return options.embedding;
    case TensorRole::kHead:
      return options.head;
    case TensorRole::kOther:
      break;
  }
  return std::nullopt;
}

absl::Status Refuse(const TensorInfo& tensor, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("tensor ", tensor.name, ": ", why));
}

absl::Status CheckRows(const TensorInfo& tensor, const Quantization& to, Pruning pruning) {
  const int64_t cols = tensor.shape.back();
  const WeightFormatInfo& format = GetWeightFormat(to.format);
  if (cols % format.block_size != 0) {
    return Refuse(tensor, absl::StrCat(cols, " inputs are no whole blocks of ", format.block_size,
                                       " as ", format.name, " has them"));
  }
  if (pruning == Pruning::kTwoOfFour && cols % 4 != 0) {
    return Refuse(tensor, absl::StrCat(cols, " inputs are no multiple of 4, as 2:4 pruning asks"));
  }
  return absl::OkStatus();
}

// Says for each tensor whether and how it is encoded.
class Chooser {
 public:
  explicit Chooser(const QuantizeOptions& options) : options_(options) {}

  // Nullopt: it stays as it is.
  absl::StatusOr<std::optional<EncodedTensor>> Choose(const TensorInfo& tensor, TensorRole role) {
    const std::optional<Quantization> wanted = Wanted(role, options_);
    const bool layer = role == TensorRole::kLinear || role == TensorRole::kExperts;
    const Pruning pruning = layer ? options_.pruning : Pruning::kNone;
    if (!wanted && pruning == Pruning::kNone) return std::optional<EncodedTensor>();
    if (!IsFloat(tensor.format) && (!wanted || !options_.requantize)) {
      if (pruning != Pruning::kNone) {
        return Refuse(tensor, absl::StrCat(TypeName(tensor),
                                           " weights are pruned only as they are requantised"));
      }
      low_bits_ = &tensor;
      return std::optional<EncodedTensor>();
    }
    EncodedTensor encoded;
    encoded.from = tensor;
    encoded.to = wanted.value_or(Quantization{.format = tensor.format});
    encoded.pruning = pruning;
    encoded.pruned_part = options_.pruned_part;
    LLM_RETURN_IF_ERROR(CheckRows(tensor, encoded.to, pruning));
    ++num_encoded_;
    return std::optional<EncodedTensor>(encoded);
  }

  // After the last tensor.
  absl::Status Check() const {
    if (num_encoded_ > 0) return absl::OkStatus();
    if (low_bits_ == nullptr) return absl::InvalidArgumentError("no tensor is to be quantised");
    return absl::InvalidArgumentError(
        absl::StrCat("no tensor to quantise is F32, F16 or BF16: ", low_bits_->name, " is ",
                     TypeName(*low_bits_), ", which is encoded again with requantize alone"));
  }

 private:
  const QuantizeOptions& options_;
  int num_encoded_ = 0;
  const TensorInfo* low_bits_ = nullptr;  // one that was left as it is
};

uint64_t DataAlignment(const WeightSource& source) {
  const auto stated = source.metadata().GetInt("general.alignment");  // checked by the reader
  return stated.ok() ? static_cast<uint64_t>(*stated) : GgufWriter::kAlignment;
}

// Collects tensors one after the other.
class Composer {
 public:
  Composer(const WeightSource& source, const ModelFile& file)
      : file_(file), alignment_(DataAlignment(source)) {}

  void Keep(const TensorInfo& tensor) {
    Add(tensor, tensor.format,
        {.size_bytes = tensor.size_bytes, .file = &file_, .offset = tensor.file_offset});
  }
  void Encode(const EncodedTensor& tensor, const std::shared_ptr<std::atomic<int64_t>>& encode_ns) {
    const WeightFormatInfo& format = GetWeightFormat(tensor.to.format);
    const int64_t rows = NumWeights(tensor.from) / tensor.from.shape.back();
    FilePart part;
    part.size_bytes = static_cast<uint64_t>(rows * RowBytes(format, tensor.from.shape.back()));
    part.derived = EncodedRows(tensor, encode_ns);
    Add(tensor.from, tensor.to.format, std::move(part));
  }
  std::unique_ptr<ModelFile> Finish(const GgufValues& values, std::unique_ptr<ModelFile> file) {
    writer_.CopyValues(values.bytes, values.count);
    std::string header = writer_.Finish(alignment_);
    for (FilePart& part : parts_) part.begin += header.size();
    FilePart first;
    first.size_bytes = header.size();
    first.derived = std::make_shared<HeldBytes>(std::move(header));
    parts_.insert(parts_.begin(), std::move(first));
    const std::string name = file->name();
    std::vector<std::unique_ptr<ModelFile>> files;
    files.push_back(std::move(file));
    return std::make_unique<ComposedFile>(name, std::move(parts_), std::move(files));
  }

 private:
  void Add(const TensorInfo& tensor, WeightFormat format, FilePart part) {
    writer_.AddTensor(tensor.name, format, tensor.shape, offset_);
    part.begin = offset_;
    offset_ = RoundUp(offset_ + part.size_bytes, alignment_);
    parts_.push_back(std::move(part));
  }

  const ModelFile& file_;
  const uint64_t alignment_;
  GgufWriter writer_;
  std::vector<FilePart> parts_;  // from the header's end
  uint64_t offset_ = 0;
};

}  // namespace

absl::StatusOr<QuantizedFile> QuantizeFile(std::unique_ptr<ModelFile> file,
                                           const QuantizeOptions& options,
                                           const LoaderLimits& limits) {
  auto encode_ns = std::make_shared<std::atomic<int64_t>>(0);
  if (!options.Any()) return QuantizedFile{std::move(file), std::move(encode_ns)};
  if (IsPack(*file)) {
    return absl::InvalidArgumentError(
        absl::StrCat(file->name(),
                     ": the weights of a pack are laid out for good: quantise or "
                     "prune the model that it was made from"));
  }
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<WeightSource> source,
                       OpenGguf(BorrowedFile(*file), limits));
  LLM_ASSIGN_OR_RETURN(const ModelConfig config, ReadModelConfig(*source));
  if (options.head && config.tied_embeddings) {
    return absl::InvalidArgumentError(
        "head_weights: the model's head is its embedding: say embedding_weights");
  }
  LLM_ASSIGN_OR_RETURN(const std::vector<TensorRole> roles, FindTensorRoles(*source, config));
  Composer composer(*source, *file);
  Chooser chooser(options);
  WeightCount was, is;
  for (size_t i = 0; i < roles.size(); ++i) {
    const TensorInfo& tensor = source->tensors()[i];
    LLM_ASSIGN_OR_RETURN(std::optional<EncodedTensor> encoded, chooser.Choose(tensor, roles[i]));
    if (roles[i] == TensorRole::kLinear || roles[i] == TensorRole::kExperts) {
      was.Add(tensor.format, NumWeights(tensor));
      is.Add(encoded ? encoded->to.format : tensor.format, NumWeights(tensor));
    }
    if (!encoded) {
      composer.Keep(tensor);
      continue;
    }
    encoded->file = file.get();
    composer.Encode(*encoded, encode_ns);
  }
  LLM_RETURN_IF_ERROR(chooser.Check());
  LLM_ASSIGN_OR_RETURN(const GgufContents contents, ReadGgufHeader(*file, file->size(), limits));
  const GgufValues values = WithFileType(contents, was.Most(), is.Most());
  return QuantizedFile{composer.Finish(values, std::move(file)), std::move(encode_ns)};
}

}  // namespace llm
