// Codes are brought into the order of the rows, scales become f16 where nothing is lost by that.
#include "src/model/hub_quantized.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "src/base/status_macros.h"
#include "src/model/hub_forms.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

constexpr int64_t kBlock = 32;  // elements of Q4_0, Q8_0 and MXFP4

absl::StatusOr<const SafeTensor*> Find(const SafetensorsSet& set, const std::string& name) {
  const auto found = set.tensors.find(name);
  if (found != set.tensors.end()) return &found->second;
  return absl::NotFoundError(absl::StrCat("tensor ", name, " beside it is missing"));
}

absl::Status WrongShape(const SafeTensor& tensor, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("tensor ", tensor.name, ": ", SafeTypeName(tensor.type), " [",
                   absl::StrJoin(tensor.shape, ", "), "], expected ", wanted));
}

// Which bits of the files are code (row, col) and the scale of (row, group).
struct CodeLayout {
  const SafeTensor* codes = nullptr;
  const SafeTensor* scales = nullptr;
  int bits = 8;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t groups = 0;
  bool by_columns = false;  // codes and scales are stored [cols or groups, rows]
  bool is_signed = false;   // else a code less 2^(bits - 1) is the value
};

float ScaleAt(const SafeTensor& scales, const char* bytes, int64_t index) {
  const auto at = static_cast<size_t>(index);
  if (scales.type == SafeType::kF32) {
    float value;
    std::memcpy(&value, bytes + at * sizeof(value), sizeof(value));
    return value;
  }
  uint16_t half;
  std::memcpy(&half, bytes + at * sizeof(half), sizeof(half));
  return scales.type == SafeType::kF16 ? F16ToF32(half) : BF16ToF32(half);
}

// Rows of Q4_0 or Q8_0.
class QuantizedRows final : public DerivedRows {
 public:
  explicit QuantizedRows(const CodeLayout& layout)
      : DerivedRows(layout.cols / kBlock * BlockBytes(layout.bits)),
        layout_(layout),
        codes_(*layout.codes),
        scales_(*layout.scales) {}

  static int64_t BlockBytes(int bits) { return 2 + kBlock * bits / 8; }

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    std::string codes;  // [count, cols], one byte each
    LLM_RETURN_IF_ERROR(ReadCodes(first, count, &codes));
    std::vector<uint16_t> scales;  // [count, groups], f16
    LLM_RETURN_IF_ERROR(ReadScales(first, count, &scales));
    const int64_t blocks_per_group = layout_.cols / layout_.groups / kBlock;
    const char* from = codes.data();
    for (int64_t row = 0; row < count; ++row) {
      for (int64_t block = 0; block < layout_.cols / kBlock; ++block) {
        const auto group = static_cast<size_t>(row * layout_.groups + block / blocks_per_group);
        std::memcpy(dst, &scales[group], sizeof(uint16_t));
        WriteBlock(reinterpret_cast<const uint8_t*>(from), dst + sizeof(uint16_t));
        from += kBlock;
        dst += BlockBytes(layout_.bits);
      }
    }
    return absl::OkStatus();
  }

  void WriteBlock(const uint8_t* codes, char* dst) const {
    if (layout_.bits == 8) {
      const uint8_t flip = layout_.is_signed ? 0 : 0x80;
      for (int64_t i = 0; i < kBlock; ++i) dst[i] = static_cast<char>(codes[i] ^ flip);
      return;
    }
    for (int64_t i = 0; i < kBlock / 2; ++i) {
      dst[i] = static_cast<char>(codes[i] | codes[i + kBlock / 2] << 4);
    }
  }

  // A code is `bits` bits of the byte stream along a row, low bits first, or of words down a
  // column.
  absl::Status ReadCodes(int64_t first, int64_t count, std::string* codes) const {
    codes->resize(static_cast<size_t>(count * layout_.cols));
    if (layout_.by_columns) return ReadCodesByColumns(first, count, codes);
    const auto row_bytes = static_cast<uint64_t>(layout_.cols * layout_.bits / 8);
    std::string bytes(static_cast<size_t>(row_bytes) * static_cast<size_t>(count), '\0');
    LLM_RETURN_IF_ERROR(codes_.file->Read(codes_.offset + static_cast<uint64_t>(first) * row_bytes,
                                          bytes.size(), bytes.data()));
    if (layout_.bits == 8) {
      *codes = std::move(bytes);
      return absl::OkStatus();
    }
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<uint8_t>(bytes[i]);
      (*codes)[2 * i] = static_cast<char>(byte & 0xF);
      (*codes)[2 * i + 1] = static_cast<char>(byte >> 4);
    }
    return absl::OkStatus();
  }

  absl::Status ReadCodesByColumns(int64_t first, int64_t count, std::string* codes) const {
    const int64_t per_word = 32 / layout_.bits;
    std::vector<uint32_t> words(static_cast<size_t>(count));
    for (int64_t col = 0; col < layout_.cols; col += per_word) {
      const int64_t word = col / per_word * layout_.rows + first;
      LLM_RETURN_IF_ERROR(
          codes_.file->Read(codes_.offset + static_cast<uint64_t>(word) * sizeof(uint32_t),
                            words.size() * sizeof(uint32_t), words.data()));
      for (size_t row = 0; row < words.size(); ++row) {
        char* to = &(*codes)[row * static_cast<size_t>(layout_.cols) + static_cast<size_t>(col)];
        for (int64_t i = 0; i < per_word; ++i) {
          const uint32_t code = words[row] >> (i * layout_.bits);
          to[i] = static_cast<char>(code & ((1u << layout_.bits) - 1));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadScales(int64_t first, int64_t count, std::vector<uint16_t>* scales) const {
    const auto size = static_cast<int64_t>(SafeTypeBytes(scales_.type));
    scales->resize(static_cast<size_t>(count * layout_.groups));
    // Along rows one piece; else one for each group.
    const int64_t pieces = layout_.by_columns ? layout_.groups : 1;
    const int64_t length = layout_.by_columns ? count : count * layout_.groups;
    std::string bytes(static_cast<size_t>(length * size), '\0');
    for (int64_t piece = 0; piece < pieces; ++piece) {
      const int64_t at = layout_.by_columns ? piece * layout_.rows + first : first * layout_.groups;
      LLM_RETURN_IF_ERROR(scales_.file->Read(scales_.offset + static_cast<uint64_t>(at * size),
                                             bytes.size(), bytes.data()));
      for (int64_t i = 0; i < length; ++i) {
        const int64_t to = layout_.by_columns ? i * layout_.groups + piece : i;
        LLM_RETURN_IF_ERROR(
            Narrow(ScaleAt(scales_, bytes.data(), i), &(*scales)[static_cast<size_t>(to)]));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Narrow(float scale, uint16_t* half) const {
    *half = F32ToF16(scale);
    if (F16ToF32(*half) == scale) return absl::OkStatus();
    return absl::UnimplementedError(
        absl::StrCat("tensor ", scales_.name, ": the scale ", scale, " has no exact form in f16"));
  }

  const CodeLayout layout_;
  const SafeTensor codes_;
  const SafeTensor scales_;
};

absl::StatusOr<HubPresented> Finish(const CodeLayout& layout) {
  const SafeType type = layout.scales->type;
  if (type != SafeType::kF32 && type != SafeType::kF16 && type != SafeType::kBF16) {
    return WrongShape(*layout.scales, "floats");
  }
  const bool divides = layout.groups >= 1 && layout.cols % layout.groups == 0 &&
                       layout.cols / layout.groups % kBlock == 0;
  if (!divides) {
    return absl::UnimplementedError(absl::StrCat(layout.groups, " groups in ", layout.cols,
                                                 " inputs: no multiples of ", kBlock));
  }
  HubPresented presented;
  presented.format = layout.bits == 8 ? WeightFormat::kQ8_0 : WeightFormat::kQ4_0;
  presented.shape = {layout.rows, layout.cols};
  presented.part.size_bytes = static_cast<uint64_t>(layout.rows * (layout.cols / kBlock) *
                                                    QuantizedRows::BlockBytes(layout.bits));
  presented.part.derived = std::make_shared<QuantizedRows>(layout);
  return presented;
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadAll(const SafeTensor& tensor) {
  std::vector<T> values(static_cast<size_t>(tensor.size_bytes / sizeof(T)));
  LLM_RETURN_IF_ERROR(tensor.file->Read(tensor.offset, tensor.size_bytes, values.data()));
  return values;
}

absl::StatusOr<HubPresented> Packed(const SafeTensor& codes, const std::string& stem, int bits,
                                    const SafetensorsSet& set) {
  if (codes.type != SafeType::kI32 || codes.shape.size() != 2) {
    return WrongShape(codes, "I32 [outputs, words]");
  }
  CodeLayout layout = {.codes = &codes, .bits = bits, .rows = codes.shape[0]};
  layout.cols = codes.shape[1] * (32 / bits);
  LLM_ASSIGN_OR_RETURN(layout.scales, Find(set, stem + "weight_scale"));
  if (layout.scales->shape.size() != 2 || layout.scales->shape[0] != layout.rows) {
    return WrongShape(*layout.scales, "[outputs, groups]");
  }
  layout.groups = layout.scales->shape[1];
  LLM_ASSIGN_OR_RETURN(const SafeTensor* shape, Find(set, stem + "weight_shape"));
  if (shape->type != SafeType::kI64) return WrongShape(*shape, "I64 [2]");
  LLM_ASSIGN_OR_RETURN(const std::vector<int64_t> stated, ReadAll<int64_t>(*shape));
  if (stated != std::vector<int64_t>{layout.rows, layout.cols}) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", shape->name, ": [", absl::StrJoin(stated, ", "),
                     "], the codes are [", layout.rows, ", ", layout.cols, "]"));
  }
  return Finish(layout);
}

absl::StatusOr<HubPresented> Int8(const SafeTensor& codes, const std::string& stem,
                                  const SafetensorsSet& set) {
  if (codes.type != SafeType::kI8 || codes.shape.size() != 2) {
    return WrongShape(codes, "I8 [outputs, inputs]");
  }
  CodeLayout layout = {.codes = &codes, .rows = codes.shape[0], .cols = codes.shape[1]};
  layout.is_signed = true;
  LLM_ASSIGN_OR_RETURN(layout.scales, Find(set, stem + "weight_scale"));
  if (layout.scales->shape.size() != 2 || layout.scales->shape[0] != layout.rows) {
    return WrongShape(*layout.scales, "[outputs, groups]");
  }
  layout.groups = layout.scales->shape[1];
  return Finish(layout);
}

absl::StatusOr<HubPresented> Mxfp4(const SafeTensor& codes, const std::string& stem,
                                   const SafetensorsSet& set) {
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, Find(set, stem + "weight_scale"));
  if (codes.type != SafeType::kU8 || codes.shape.size() != 2) {
    return WrongShape(codes, "U8 [outputs, bytes]");
  }
  const int64_t blocks = codes.shape[1] / (kBlock / 2);
  if (codes.shape[1] % (kBlock / 2) != 0 || scales->type != SafeType::kU8 ||
      scales->shape != std::vector<int64_t>{codes.shape[0], blocks}) {
    return WrongShape(*scales, absl::StrCat("U8 [", codes.shape[0], ", ", blocks, "]"));
  }
  HubPresented presented;
  presented.format = WeightFormat::kMXFP4;
  presented.shape = {codes.shape[0], blocks * kBlock};
  presented.part.size_bytes = static_cast<uint64_t>(codes.shape[0] * blocks) *
                              static_cast<uint64_t>(GetWeightFormat(presented.format).block_bytes);
  presented.part.derived = Mxfp4Rows(codes, *scales, 0, 1);
  return presented;
}

// Symmetric: every zero point in the middle; inputs in their order.
absl::Status CheckGptq(const CodeLayout& layout, const SafeTensor& zeros, const SafeTensor* order,
                       int stored_zero) {
  const int64_t per_word = 32 / layout.bits;
  if (zeros.type != SafeType::kI32 ||
      zeros.shape != std::vector<int64_t>{layout.groups, layout.rows / per_word}) {
    return WrongShape(zeros, "I32 [groups, words of outputs]");
  }
  uint32_t wanted = 0;
  for (int64_t i = 0; i < per_word; ++i) {
    wanted |= static_cast<uint32_t>(stored_zero) << (i * layout.bits);
  }
  LLM_ASSIGN_OR_RETURN(const std::vector<uint32_t> words, ReadAll<uint32_t>(zeros));
  for (const uint32_t word : words) {
    if (word == wanted) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor ", zeros.name, ": zero points that are not in the middle"));
  }
  if (order == nullptr) return absl::OkStatus();
  if (order->type != SafeType::kI32 || order->shape != std::vector<int64_t>{layout.cols}) {
    return WrongShape(*order, "I32 [inputs]");
  }
  LLM_ASSIGN_OR_RETURN(const std::vector<int32_t> groups, ReadAll<int32_t>(*order));
  for (int64_t i = 0; i < layout.cols; ++i) {
    if (groups[static_cast<size_t>(i)] == i / (layout.cols / layout.groups)) continue;
    return absl::UnimplementedError(
        absl::StrCat("tensor ", order->name, ": inputs that are not in the order of groups"));
  }
  return absl::OkStatus();
}

absl::StatusOr<HubPresented> Gptq(const SafeTensor& codes, const std::string& stem,
                                  const HubExtras& extras, const SafetensorsSet& set) {
  const int64_t per_word = 32 / extras.quantized_bits;
  if (codes.type != SafeType::kI32 || codes.shape.size() != 2 || codes.shape[1] % per_word != 0) {
    return WrongShape(codes, "I32 [words of inputs, outputs]");
  }
  CodeLayout layout = {.codes = &codes, .bits = extras.quantized_bits, .rows = codes.shape[1]};
  layout.cols = codes.shape[0] * per_word;
  layout.by_columns = true;
  LLM_ASSIGN_OR_RETURN(layout.scales, Find(set, stem + "scales"));
  if (layout.scales->shape.size() != 2 || layout.scales->shape[1] != layout.rows) {
    return WrongShape(*layout.scales, "[groups, outputs]");
  }
  layout.groups = layout.scales->shape[0];
  LLM_ASSIGN_OR_RETURN(HubPresented presented, Finish(layout));
  LLM_ASSIGN_OR_RETURN(const SafeTensor* zeros, Find(set, stem + "qzeros"));
  const auto order = Find(set, stem + "g_idx");
  const int middle = 1 << (layout.bits - 1);
  LLM_RETURN_IF_ERROR(
      CheckGptq(layout, *zeros, order.ok() ? *order : nullptr, middle - extras.zero_point_bias));
  return presented;
}

}  // namespace

absl::StatusOr<HubPresented> PresentQuantized(const SafeTensor& tensor, const HubExtras& extras,
                                              const SafetensorsSet& set) {
  const std::string stem = tensor.name.substr(0, tensor.name.rfind('.') + 1);
  switch (extras.quantization) {
    case HubQuantization::kPacked:
      return Packed(tensor, stem, extras.quantized_bits, set);
    case HubQuantization::kInt8:
      return Int8(tensor, stem, set);
    case HubQuantization::kMxfp4:
      return Mxfp4(tensor, stem, set);
    case HubQuantization::kGptq:
      return Gptq(tensor, stem, extras, set);
    case HubQuantization::kNone:
      break;
  }
  return absl::UnimplementedError("low bits that the config does not announce");
}

}  // namespace llm
