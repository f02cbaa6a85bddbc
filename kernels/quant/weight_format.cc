// The table is formats.def; the compiler checks each row against its block struct.
#include "kernels/quant/weight_format.h"

#include <cstring>
#include <type_traits>

#include "kernels/quant/all_formats.h"
#include "src/base/dcheck.h"

namespace llm {
namespace {

// Blocks are copied out before decoding: the bytes of a file need not be aligned.
template <typename Block>
void DecodeBlocks(const void* src, int64_t count, float* dst) {
  static_assert(std::is_trivially_copyable_v<Block>);
  LLM_DCHECK(count % Block::kBlockSize == 0);
  const char* bytes = static_cast<const char*>(src);
  for (int64_t i = 0; i < count; i += Block::kBlockSize, bytes += sizeof(Block)) {
    Block block;
    std::memcpy(&block, bytes, sizeof(block));
    block.Decode(dst + i);
  }
}

constexpr WeightFormatInfo kWeightFormats[] = {
#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  {WeightFormat::k##name, #name, block_size, block_bytes, &DecodeBlocks<name>},
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT
};

#define LLM_WEIGHT_FORMAT(name, ggml_type, block_size, block_bytes, header) \
  static_assert(name::kBlockSize == (block_size) && sizeof(name) == (block_bytes));
#include "kernels/quant/formats.def"
#undef LLM_WEIGHT_FORMAT

}  // namespace

const WeightFormatInfo* FindWeightFormat(int32_t ggml_type) {
  for (const WeightFormatInfo& info : kWeightFormats) {
    if (static_cast<int32_t>(info.format) == ggml_type) return &info;
  }
  return nullptr;
}

const WeightFormatInfo& GetWeightFormat(WeightFormat format) {
  const WeightFormatInfo* info = FindWeightFormat(static_cast<int32_t>(format));
  LLM_DCHECK(info != nullptr);
  return *info;
}

}  // namespace llm
