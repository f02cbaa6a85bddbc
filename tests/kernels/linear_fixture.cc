#include "tests/kernels/linear_fixture.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "gtest/gtest.h"
#include "kernels/quant/all_formats.h"
#include "kernels/reference/quantize.h"
#include "src/tensor/float_convert.h"

namespace llm {
namespace {

uint16_t RandomHalf(std::mt19937* random) {
  std::uniform_real_distribution<float> magnitude(0.001f, 0.02f);
  return F32ToF16((*random)() % 2 == 0 ? magnitude(*random) : -magnitude(*random));
}

void SetElement(F32* element, float value) { element->value = value; }
void SetElement(F16* element, float value) { element->value = F32ToF16(value); }
void SetElement(BF16* element, float value) { element->value = F32ToBF16(value); }

// Any bytes are legal quants and group scales; only the floats, and exponents, need a plausible
// size.
template <typename Block>
void SetScales(Block* block, std::mt19937* random) {
  if constexpr (requires { block->exponent; })
    block->exponent = static_cast<uint8_t>(118 + (*random)() % 4);
  if constexpr (requires { block->SetScale(uint16_t{}); }) {
    block->SetScale(RandomHalf(random));
  } else if constexpr (std::is_same_v<Block, BF16_24>) {
    for (uint16_t& value : block->values)
      value = F32ToBF16(std::normal_distribution<float>(0, 0.05f)(*random));
  } else if constexpr (requires(float scale) { scale = block->scale; }) {
    const uint16_t scale = RandomHalf(random);
    constexpr bool kIsFloat = std::is_same_v<decltype(block->scale), float>;
    if constexpr (kIsFloat) block->scale = F16ToF32(scale);
    if constexpr (!kIsFloat) block->scale = scale;
  }
  if constexpr (requires { block->min; }) block->min = RandomHalf(random);
  if constexpr (requires { block->min_scale; }) block->min_scale = RandomHalf(random);
}

// `pattern` fills all bytes but the scales; random bytes where it is negative.
template <typename Block>
Block RandomBlock(int pattern, std::mt19937* random) {
  Block block;
  if constexpr (Block::kBlockSize == 1) {
    SetElement(&block, std::normal_distribution<float>(0, 0.05f)(*random));
  } else {
    uint8_t bytes[sizeof(Block)];
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(pattern < 0 ? (*random)() : pattern);
    std::memcpy(&block, bytes, sizeof(Block));
    SetScales(&block, random);
  }
  return block;
}

template <typename Block>
void FillBlocks(int pattern, std::vector<uint8_t>* blocks, std::mt19937* random) {
  for (size_t i = 0; i + sizeof(Block) <= blocks->size(); i += sizeof(Block)) {
    const Block block = RandomBlock<Block>(pattern, random);
    std::memcpy(blocks->data() + i, &block, sizeof(Block));
  }
}

}  // namespace

std::vector<WeightFormat> AllWeightFormats() {
  return {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) WeightFormat::k##name,
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  };
}

RandomWeight MakeRandomWeight(WeightFormat format, int64_t rows, int64_t cols,
                              std::mt19937* random) {
  return MakePatternWeight(format, rows, cols, /*pattern=*/-1, random);
}

RandomWeight MakePatternWeight(WeightFormat format, int64_t rows, int64_t cols, int pattern,
                               std::mt19937* random) {
  const WeightFormatInfo& info = GetWeightFormat(format);
  RandomWeight weight = {format, rows, cols, {}, {}};
  weight.blocks.resize(static_cast<size_t>(rows * RowBytes(info, cols)));
  weight.decoded.resize(static_cast<size_t>(rows * cols));
  switch (format) {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  case WeightFormat::k##name:                                               \
    FillBlocks<name>(pattern, &weight.blocks, random);                      \
    break;
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
  }
  info.decode(weight.blocks.data(), rows * cols, weight.decoded.data());
  return weight;
}

std::unique_ptr<Packed> Pack(const KernelTable& kernels, const RandomWeight& weight) {
  auto packed = std::make_unique<Packed>();
  const auto bytes = kernels.packed_bytes(weight.format, weight.rows, weight.cols);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  packed->buffer = *Buffer::Allocate(&packed->allocator, *bytes, "packed weight");
  std::memset(packed->buffer.data(), 0xff, *bytes);
  packed->weight = {weight.format, weight.rows, weight.cols, packed->buffer.data()};
  const int64_t row_bytes = RowBytes(GetWeightFormat(weight.format), weight.cols);
  const int64_t first = std::min<int64_t>(kPackTileRows, weight.rows);
  for (const auto& [begin, count] :
       {std::pair{int64_t{0}, first}, std::pair{first, weight.rows - first}}) {
    PackRowsParams params;
    params.weight = packed->weight;
    params.row_begin = begin;
    params.num_rows = count;
    params.source = weight.blocks.data() + begin * row_bytes;
    params.destination = packed->buffer.data();
    if (count == 0) continue;
    const absl::Status status = kernels.pack_rows(params);
    EXPECT_TRUE(status.ok()) << status;
  }
  return packed;
}

RandomActivations::RandomActivations(int64_t num_rows, int64_t num_cols, std::mt19937* random)
    : rows(num_rows), cols(num_cols), values(static_cast<size_t>(num_rows * num_cols)) {
  std::normal_distribution<float> normal(0.1f, 1.0f);
  for (float& value : values) value = normal(*random);
  if (cols % kActivationGroup != 0) return;
  quants.resize(values.size());
  scales.resize(values.size() / kActivationGroup);
  sums.resize(values.size() / kActivationSumGroup);
  const Activations output = Quants(0, rows);
  for (int64_t row = 0; row < rows; ++row)
    ReferenceStore(output, row, 0, &values[static_cast<size_t>(row * cols)], cols);
}

Activations RandomActivations::Values(int64_t begin, int64_t count) const {
  Activations a;
  a.values = const_cast<float*>(values.data()) + begin * cols;
  a.rows = count;
  a.cols = cols;
  return a;
}

Activations RandomActivations::Quants(int64_t begin, int64_t count) const {
  Activations a;
  a.quants = const_cast<int8_t*>(quants.data()) + begin * cols;
  a.scales = const_cast<float*>(scales.data()) + begin * (cols / kActivationGroup);
  a.sums = const_cast<int16_t*>(sums.data()) + begin * (cols / kActivationSumGroup);
  a.rows = count;
  a.cols = cols;
  return a;
}

}  // namespace llm
