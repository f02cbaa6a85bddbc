// Rows of a checkpoint's bytes and scales become rows of blocks.
#include "src/model/hub_floats.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/quant/bf16_24.h"
#include "kernels/quant/mxfp8.h"
#include "kernels/quant/nvfp4_f32.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"
#include "src/model/hub_companion.h"
#include "src/model/hub_forms.h"
#include "src/model/nan_scales.h"

namespace llm {
namespace {

template <typename Block>
int64_t BytesOfRow(int64_t cols) {
  return cols / Block::kBlockSize * static_cast<int64_t>(sizeof(Block));
}

class Mxfp8Rows final : public DerivedRows {
 public:
  Mxfp8Rows(const SafeTensor& codes, const SafeTensor& exponents)
      : DerivedRows(BytesOfRow<MXFP8>(codes.shape[1])), codes_(codes), exponents_(exponents) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    std::string codes;
    std::string exponents;
    LLM_RETURN_IF_ERROR(ReadByteRows(codes_, codes_.shape[1], first, count, &codes));
    LLM_RETURN_IF_ERROR(RefuseNans(codes_, codes));
    LLM_RETURN_IF_ERROR(ReadByteRows(exponents_, exponents_.shape[1], first, count, &exponents));
    const char* from = codes.data();
    const char* const rows = dst;
    for (const char exponent : exponents) {
      MXFP8 block;
      block.exponent = static_cast<uint8_t>(exponent);
      std::memcpy(block.codes, from, sizeof(block.codes));
      std::memcpy(dst, &block, sizeof(block));
      from += sizeof(block.codes);
      dst += sizeof(block);
    }
    return RefuseNanScales({.tensor = exponents_.name,
                            .format = WeightFormat::kMXFP8,
                            .cols = codes_.shape[1],
                            .first = first,
                            .count = count,
                            .blocks = rows});
  }

  const SafeTensor codes_;
  const SafeTensor exponents_;
};

class Nvfp4Rows final : public DerivedRows {
 public:
  Nvfp4Rows(const SafeTensor& codes, const SafeTensor& scales, float scale)
      : DerivedRows(BytesOfRow<NVFP4_F32>(2 * codes.shape[1])),
        codes_(codes),
        scales_(scales),
        scale_(scale) {}

 private:
  static constexpr int kGroup = 16;
  static constexpr int kHalf = kGroup / 2;  // bytes of a group
  static constexpr int kGroups = NVFP4_F32::kBlockSize / kGroup;

  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    std::string codes;
    std::string scales;
    LLM_RETURN_IF_ERROR(ReadByteRows(codes_, codes_.shape[1], first, count, &codes));
    LLM_RETURN_IF_ERROR(ReadByteRows(scales_, scales_.shape[1], first, count, &scales));
    LLM_RETURN_IF_ERROR(RefuseNans(scales_, scales));
    const char* from = codes.data();
    for (size_t i = 0; i < scales.size(); i += kGroups) {
      NVFP4_F32 block;
      block.scale = scale_;
      for (size_t group = 0; group < kGroups; ++group, from += kHalf) {
        const auto group_scale = static_cast<uint8_t>(scales[i + group]);
        if ((group_scale & 0x80) != 0) {
          return absl::InvalidArgumentError(
              absl::StrCat("tensor ", Printable(scales_.name), ": has a negative scale"));
        }
        block.block.group_scales[group] = group_scale;
        PutGroup(from, &block.block.quants[group * kHalf]);
      }
      std::memcpy(dst, &block, sizeof(block));
      dst += sizeof(block);
    }
    return absl::OkStatus();
  }

  // A byte holds neighbours there, and elements half a group apart here.
  static void PutGroup(const char* from, uint8_t* to) {
    const auto element = [from](int i) {
      return static_cast<uint8_t>(from[i / 2]) >> (i % 2 * 4) & 0xf;
    };
    for (int i = 0; i < kHalf; ++i) {
      to[i] = static_cast<uint8_t>(element(i) | element(i + kHalf) << 4);
    }
  }

  const SafeTensor codes_;
  const SafeTensor scales_;
  const float scale_;
};

class SparseRows final : public DerivedRows {
 public:
  SparseRows(const SafeTensor& kept, const SafeTensor& masks)
      : DerivedRows(BytesOfRow<BF16_24>(2 * kept.shape[1])), kept_(kept), masks_(masks) {}

 private:
  absl::Status ReadRows(int64_t first, int64_t count, char* dst) const override {
    std::string kept;
    std::string masks;
    const int64_t kept_bytes = kept_.shape[1] * static_cast<int64_t>(sizeof(uint16_t));
    LLM_RETURN_IF_ERROR(ReadByteRows(kept_, kept_bytes, first, count, &kept));
    LLM_RETURN_IF_ERROR(ReadByteRows(masks_, masks_.shape[1], first, count, &masks));
    LLM_RETURN_IF_ERROR(CheckMasks(masks));
    const char* from = kept.data();
    BF16_24 block;
    for (size_t i = 0; i < masks.size(); i += sizeof(block.masks)) {
      std::memcpy(block.values, from, sizeof(block.values));
      std::memcpy(block.masks, &masks[i], sizeof(block.masks));
      std::memcpy(dst, &block, sizeof(block));
      from += sizeof(block.values);
      dst += sizeof(block);
    }
    return absl::OkStatus();
  }

  absl::Status CheckMasks(const std::string& masks) const {
    for (const char mask : masks) {
      const auto bits = static_cast<uint8_t>(mask);
      if (std::popcount(static_cast<uint8_t>(bits & 0xf)) == 2 && std::popcount(bits) == 4) {
        continue;
      }
      return absl::InvalidArgumentError(
          absl::StrCat("tensor ", Printable(masks_.name), ": has other than two weights in four"));
    }
    return absl::OkStatus();
  }

  const SafeTensor kept_;
  const SafeTensor masks_;
};

absl::Status CheckMatrix(const SafeTensor& tensor, SafeType type, const char* what) {
  if (tensor.type == type && tensor.shape.size() == 2) return absl::OkStatus();
  return WrongCompanion(tensor, what);
}

}  // namespace

absl::StatusOr<HubPresented> PresentMxfp8(const SafeTensor& codes, const std::string& stem,
                                          const SafetensorsSet& set) {
  LLM_RETURN_IF_ERROR(CheckMatrix(codes, SafeType::kF8E4M3, "F8_E4M3 [outputs, inputs]"));
  LLM_ASSIGN_OR_RETURN(const SafeTensor* exponents, FindCompanion(set, stem + "weight_scale"));
  LLM_RETURN_IF_ERROR(CheckCompanion(*exponents, SafeType::kU8,
                                     {codes.shape[0], codes.shape[1] / MXFP8::kBlockSize}));
  return PresentDerived(WeightFormat::kMXFP8, {codes.shape[0], codes.shape[1]},
                        std::make_shared<Mxfp8Rows>(codes, *exponents));
}

absl::StatusOr<HubPresented> PresentNvfp4(const SafeTensor& codes, const std::string& stem,
                                          const SafetensorsSet& set) {
  LLM_RETURN_IF_ERROR(CheckMatrix(codes, SafeType::kU8, "U8 [outputs, bytes]"));
  const int64_t rows = codes.shape[0];
  const int64_t cols = 2 * codes.shape[1];
  LLM_ASSIGN_OR_RETURN(const SafeTensor* scales, FindCompanion(set, stem + "weight_scale"));
  LLM_RETURN_IF_ERROR(CheckCompanion(*scales, SafeType::kF8E4M3, {rows, cols / 16}));
  LLM_ASSIGN_OR_RETURN(const SafeTensor* whole, FindCompanion(set, stem + "weight_global_scale"));
  LLM_RETURN_IF_ERROR(CheckCompanion(*whole, SafeType::kF32, {1}));
  std::vector<float> divisor;
  LLM_RETURN_IF_ERROR(ReadFloats(*whole, 0, 1, &divisor));
  const float scale = 1.0f / divisor[0];
  if (!std::isfinite(scale) || scale == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Printable(whole->name), ": ", divisor[0], " divides nothing"));
  }
  return PresentDerived(WeightFormat::kNVFP4_F32, {rows, cols},
                        std::make_shared<Nvfp4Rows>(codes, *scales, scale));
}

absl::StatusOr<HubPresented> PresentSparse24(const SafeTensor& kept, const std::string& stem,
                                             const SafetensorsSet& set) {
  LLM_RETURN_IF_ERROR(CheckMatrix(kept, SafeType::kBF16, "BF16 [outputs, inputs / 2]"));
  const int64_t rows = kept.shape[0];
  const int64_t cols = 2 * kept.shape[1];
  LLM_ASSIGN_OR_RETURN(const SafeTensor* masks, FindCompanion(set, stem + "bitmask"));
  LLM_RETURN_IF_ERROR(CheckCompanion(*masks, SafeType::kU8, {rows, cols / 8}));
  LLM_ASSIGN_OR_RETURN(const SafeTensor* shape, FindCompanion(set, stem + "shape"));
  if (shape->type != SafeType::kI64) return WrongCompanion(*shape, "I64 [2, 1]");
  LLM_ASSIGN_OR_RETURN(const std::vector<int64_t> stated, ReadAll<int64_t>(*shape));
  if (stated != std::vector<int64_t>{rows, cols}) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", Printable(shape->name), ": is not [", rows, ", ", cols, "]"));
  }
  return PresentDerived(WeightFormat::kBF16_24, {rows, cols},
                        std::make_shared<SparseRows>(kept, *masks));
}

}  // namespace llm
