// Arithmetic over blocks: window groups keep only the last ones.
#include "src/engine/kv_image.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/cache/window.h"

namespace llm {

absl::StatusOr<size_t> KvImage::Bytes(const KvShape& shape, int64_t num_tokens) {
  std::optional<size_t> total = 0;
  const int64_t num_blocks = num_tokens / shape.block_size;
  for (const KvGroupShape& group : shape.groups) {
    const int32_t first =
        FirstNeededBlock(static_cast<int32_t>(num_tokens), group.window, shape.block_size);
    const auto bytes =
        CheckedMul(static_cast<size_t>(num_blocks - first), static_cast<size_t>(group.block_bytes));
    if (total && bytes) total = CheckedAdd(*total, *bytes);
    if (!total || !bytes) {
      return absl::ResourceExhaustedError(
          absl::StrCat("prefix: the keys and values of ", num_tokens, " tokens overflow"));
    }
  }
  return *total;
}

absl::StatusOr<std::shared_ptr<KvImage>> KvImage::Create(Allocator* allocator, KvShape shape,
                                                         std::vector<int32_t> tokens,
                                                         uint64_t variant) {
  const auto num_tokens = static_cast<int64_t>(tokens.size());
  LLM_ASSIGN_OR_RETURN(const size_t bytes, Bytes(shape, num_tokens));
  std::shared_ptr<KvImage> image(new KvImage(std::move(shape), std::move(tokens), variant));
  LLM_ASSIGN_OR_RETURN(image->bytes_, Buffer::Allocate(allocator, bytes, "prefix"));
  return image;
}

std::byte* KvImage::block(int32_t index, int group) const {
  LLM_DCHECK(index >= 0 && index < num_blocks());
  uint64_t offset = 0;
  const auto num_tokens = static_cast<int32_t>(tokens_.size());
  for (size_t g = 0; g < shape_.groups.size(); ++g) {
    const KvGroupShape& one = shape_.groups[g];
    const int32_t first = FirstNeededBlock(num_tokens, one.window, shape_.block_size);
    if (static_cast<int>(g) == group && index < first) return nullptr;
    // Those before the block: of earlier ones all groups, of its own those that come first.
    const int32_t end = index + (static_cast<int>(g) < group ? 1 : 0);
    offset += static_cast<uint64_t>(std::max(0, end - first)) * one.block_bytes;
  }
  return bytes_.data() + offset;
}

}  // namespace llm
