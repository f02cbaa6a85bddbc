// Storage of keys and values: for each group and layer, an array of blocks in kernels/kv_layout.h's
// layout.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "src/cache/block_table.h"
#include "src/cache/kv_groups.h"
#include "src/tensor/buffer.h"
#include "src/tensor/device.h"

namespace llm {

// Where keys and values lie: host memory, or a device's, which outlives the cache; `stream` is
// where the work on them is put, their copies among it, and is used by the cache's calls alone.
struct KvMemory {
  Device* device = nullptr;
  DeviceStream* stream = nullptr;
};

class KvCache {
 public:
  // Bytes of one block of a group = block_bytes * number of the group's layers; blocks of all
  // layers of a group move together. The memory is zeroed. RESOURCE_EXHAUSTED when the allocator
  // refuses.
  static absl::StatusOr<std::unique_ptr<KvCache>> Create(Allocator* allocator,
                                                         const std::vector<KvGroupSpec>& groups,
                                                         const std::vector<int>& num_blocks,
                                                         size_t block_bytes,
                                                         const KvMemory& memory = {});

  // Start of the layer's blocks: block b lies at + b * block_bytes. REQUIRES: the layer is in some
  // group.
  std::byte* LayerBase(int layer) const;
  int GroupOfLayer(int layer) const { return layers_[static_cast<size_t>(layer)].group; }
  int num_blocks(int group) const { return num_blocks_[static_cast<size_t>(group)]; }
  // Copies one block's bytes in every layer of the group. Fails, as all of these, where the device
  // does.
  absl::Status CopyBlock(int group, BlockId source, BlockId destination);
  // One block's bytes in every layer of the group, layer after layer: [block_bytes(group)].
  size_t block_bytes(int group) const {
    return block_bytes_ * groups_[static_cast<size_t>(group)].layers.size();
  }
  absl::Status ReadBlock(int group, BlockId block, std::byte* out) const;
  absl::Status WriteBlock(int group, BlockId block, const std::byte* from);
  size_t size_bytes() const { return storage_.size(); }

 private:
  struct Layer {
    int group = 0;
    size_t offset = 0;  // bytes into storage_
  };
  explicit KvCache(const KvMemory& memory) : memory_(memory) {}
  absl::Status Allocate(Allocator* allocator, size_t bytes);

  const KvMemory memory_;
  size_t block_bytes_ = 0;
  std::vector<KvGroupSpec> groups_;
  std::vector<int> num_blocks_;
  std::vector<Layer> layers_;
  Buffer storage_;
};

}  // namespace llm
