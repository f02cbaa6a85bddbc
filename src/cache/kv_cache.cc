// One allocation; each layer's blocks are one contiguous stretch of it, group after group.
#include "src/cache/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

constexpr int kMaxLayers =
    65536;  // far above any model; bounds the table that a bad config could ask for

absl::Status CheckGroups(const std::vector<KvGroupSpec>& groups,
                         const std::vector<int>& num_blocks) {
  if (groups.empty() || groups.size() != num_blocks.size()) {
    return absl::InvalidArgumentError(absl::StrCat("kv cache: ", groups.size(), " groups, but ",
                                                   num_blocks.size(), " block counts"));
  }
  for (size_t g = 0; g < groups.size(); ++g) {
    if (num_blocks[g] < 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("kv cache: group ", g, " has ", num_blocks[g], " blocks, needs at least 1"));
    }
    for (int layer : groups[g].layers) {
      if (layer < 0 || layer >= kMaxLayers) {
        return absl::InvalidArgumentError(
            absl::StrCat("kv cache: group ", g, " names layer ", layer, ", limit ", kMaxLayers));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<KvCache>> KvCache::Create(Allocator* allocator,
                                                         const std::vector<KvGroupSpec>& groups,
                                                         const std::vector<int>& num_blocks,
                                                         size_t block_bytes,
                                                         const KvMemory& memory) {
  if (absl::Status status = CheckGroups(groups, num_blocks); !status.ok()) return status;
  std::unique_ptr<KvCache> cache(new KvCache(memory));
  cache->block_bytes_ = block_bytes;
  cache->groups_ = groups;
  cache->num_blocks_ = num_blocks;
  size_t total = 0;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::optional<size_t> layer_bytes =
        CheckedMul(static_cast<size_t>(num_blocks[g]), block_bytes);
    for (int layer : groups[g].layers) {
      const size_t index = static_cast<size_t>(layer);
      if (cache->layers_.size() <= index) cache->layers_.resize(index + 1, Layer{-1, 0});
      if (cache->layers_[index].group >= 0) {
        return absl::InvalidArgumentError(absl::StrCat("kv cache: layer ", layer, " is in groups ",
                                                       cache->layers_[index].group, " and ", g));
      }
      cache->layers_[index] = Layer{static_cast<int>(g), total};
      const std::optional<size_t> sum =
          layer_bytes.has_value() ? CheckedAdd(total, *layer_bytes) : std::nullopt;
      if (!sum.has_value()) {
        return absl::ResourceExhaustedError(absl::StrCat("kv cache: ", num_blocks[g], " blocks of ",
                                                         block_bytes, " bytes overflow the sum"));
      }
      total = *sum;
    }
  }
  LLM_RETURN_IF_ERROR(cache->Allocate(allocator, total));
  return cache;
}

// Zeros, so that a slot never written holds numbers and not what the host had there.
absl::Status KvCache::Allocate(Allocator* allocator, size_t bytes) {
  if (memory_.device == nullptr) {
    LLM_ASSIGN_OR_RETURN(storage_, Buffer::AllocateZeroed(allocator, bytes, "kv cache"));
    return absl::OkStatus();
  }
  LLM_ASSIGN_OR_RETURN(storage_, Buffer::AllocateOn(memory_.device, allocator, bytes, "kv cache"));
  return memory_.stream->Clear(storage_.data(), bytes);
}

std::byte* KvCache::LayerBase(int layer) const {
  LLM_DCHECK(layer >= 0 && static_cast<size_t>(layer) < layers_.size());
  return storage_.data() + layers_[static_cast<size_t>(layer)].offset;
}

absl::Status KvCache::CopyBlock(int group, BlockId source, BlockId destination) {
  LLM_DCHECK(source >= 0 && source < num_blocks(group));
  LLM_DCHECK(destination >= 0 && destination < num_blocks(group));
  if (source == destination) return absl::OkStatus();
  for (int layer : groups_[static_cast<size_t>(group)].layers) {
    std::byte* base = LayerBase(layer);
    std::byte* to = base + static_cast<size_t>(destination) * block_bytes_;
    const std::byte* from = base + static_cast<size_t>(source) * block_bytes_;
    if (memory_.stream == nullptr) {
      std::memcpy(to, from, block_bytes_);
    } else {
      LLM_RETURN_IF_ERROR(memory_.stream->CopyWithin(to, from, block_bytes_));
    }
  }
  return absl::OkStatus();
}

absl::Status KvCache::ReadBlock(int group, BlockId block, std::byte* out) const {
  LLM_DCHECK(block >= 0 && block < num_blocks(group));
  for (int layer : groups_[static_cast<size_t>(group)].layers) {
    const std::byte* from = LayerBase(layer) + static_cast<size_t>(block) * block_bytes_;
    if (memory_.stream == nullptr) {
      std::memcpy(out, from, block_bytes_);
    } else {
      LLM_RETURN_IF_ERROR(memory_.stream->CopyOut(out, from, block_bytes_));
    }
    out += block_bytes_;
  }
  return memory_.stream == nullptr ? absl::OkStatus() : memory_.stream->Wait();
}

absl::Status KvCache::WriteBlock(int group, BlockId block, const std::byte* from) {
  LLM_DCHECK(block >= 0 && block < num_blocks(group));
  for (int layer : groups_[static_cast<size_t>(group)].layers) {
    std::byte* to = LayerBase(layer) + static_cast<size_t>(block) * block_bytes_;
    if (memory_.stream == nullptr) {
      std::memcpy(to, from, block_bytes_);
    } else {
      LLM_RETURN_IF_ERROR(memory_.stream->CopyIn(to, from, block_bytes_));
    }
    from += block_bytes_;
  }
  return memory_.stream == nullptr ? absl::OkStatus() : memory_.stream->Wait();
}

}  // namespace llm
