// The keys and values of a prefix outside the engine's blocks, and what they depend on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/scheduler/adoption.h"
#include "src/tensor/buffer.h"

namespace llm {

struct KvGroupShape {
  int32_t window = 0;        // tokens; 0: all
  int32_t num_layers = 0;    // that share the group
  uint64_t block_bytes = 0;  // of one block in all of them
  bool operator==(const KvGroupShape&) const = default;
};

struct KvShape {
  int32_t block_size = 0;
  std::vector<KvGroupShape> groups;  // empty: the runner does not show its blocks
};

// What keys and values depend on beside the tokens: those of one identity are equal to the bit.
struct KvIdentity {
  uint64_t model_id = 0;
  std::string numerics_id;
  std::string kv_dtype;
  KvShape shape;
};

// The whole blocks of `tokens` that a request which begins with them reads: all of a full group,
// the last ones of a window group. They lie block after block, each with its groups in order.
class KvImage {
 public:
  // RESOURCE_EXHAUSTED: no memory. REQUIRES: whole blocks, at least one; groups.
  static absl::StatusOr<std::shared_ptr<KvImage>> Create(Allocator* allocator, KvShape shape,
                                                         std::vector<int32_t> tokens,
                                                         uint64_t variant);
  // Of such an image, unless it overflows.
  static absl::StatusOr<size_t> Bytes(const KvShape& shape, int64_t num_tokens);

  const KvShape& shape() const { return shape_; }
  const std::vector<int32_t>& tokens() const { return tokens_; }
  uint64_t variant() const { return variant_; }  // Request::cache_variant
  int32_t num_blocks() const { return static_cast<int32_t>(tokens_.size()) / shape_.block_size; }
  // Of one block in all groups, at most.
  static uint64_t BytesOfIndex(const KvShape& shape) {
    uint64_t bytes = 0;
    for (const KvGroupShape& group : shape.groups) bytes += group.block_bytes;
    return bytes;
  }
  // [block_bytes of the group]; null: the window has left it behind.
  std::byte* block(int32_t index, int group) const;

 private:
  KvImage(KvShape shape, std::vector<int32_t> tokens, uint64_t variant)
      : shape_(std::move(shape)), tokens_(std::move(tokens)), variant_(variant) {}

  const KvShape shape_;
  const std::vector<int32_t> tokens_;
  const uint64_t variant_;
  Buffer bytes_;
};

// An image on its way out of an engine's blocks, or into them. Shared by the caller that waits for
// it and the engine thread, one after the other.
struct PrefixTransfer {
  bool restore = false;
  std::shared_ptr<KvImage> image;
  int32_t next_block = 0;  // to be copied out
  Adoption adoption;       // of a restore
};

}  // namespace llm
