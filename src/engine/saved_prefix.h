// The file of a saved prefix. Numbers are little-endian.
//
//   SavedPrefixHeader
//   SavedPrefixGroup [num_groups]
//   tokens           [num_tokens], int32, then zeros up to a multiple of 8
//   for each block of block_size tokens, for each group that keeps it: its bytes, and Checksum of
//   them as 8 bytes
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/engine/engine.h"
#include "src/engine/kv_image.h"
#include "src/loader/model_file.h"

namespace llm {

inline constexpr char kSavedPrefixMagic[8] = {'\x89', 'L', 'L', 'M', 'P', 'R', 'F', 'X'};
inline constexpr uint32_t kSavedPrefixVersion = 1;

struct SavedPrefixHeader {
  char magic[8];
  uint32_t version;
  uint32_t block_size;
  char numerics_id[64];  // then zeros, as the next
  char kv_dtype[16];
  uint64_t model_id;
  uint64_t variant;
  uint64_t file_bytes;
  uint32_t num_tokens;
  uint32_t num_groups;
  uint64_t checksum;  // of all bytes before the first block, with this field 0
};
static_assert(sizeof(SavedPrefixHeader) == 136);

struct SavedPrefixGroup {
  uint32_t window;
  uint32_t num_layers;
  uint64_t block_bytes;
};
static_assert(sizeof(SavedPrefixGroup) == 16);

// Appears at `path` whole or not at all. Errors as AtomicFile's.
absl::Status WriteSavedPrefix(const KvImage& image, const KvIdentity& identity,
                              const std::string& path);
// DATA_LOSS: cut or damaged; INVALID_ARGUMENT: no such file, or a malformed one;
// FAILED_PRECONDITION, naming what differs: of another format version or identity, or longer than
// max_tokens; RESOURCE_EXHAUSTED: no memory. Takes no memory before the sizes are believed.
absl::StatusOr<std::shared_ptr<KvImage>> ReadSavedPrefix(const ModelFile& file,
                                                         const KvIdentity& identity,
                                                         int64_t max_tokens, Allocator* allocator);

// llm_prefix_save and llm_prefix_load. *pin_id (null: it is not held) is set by a load alone.
absl::Status SavePrefix(Engine* engine, RequestSpec prefix, const std::string& path);
struct LoadedPrefix {
  size_t num_tokens = 0;
  uint64_t pin_id = 0;  // 0: its blocks are cached ones
};
absl::StatusOr<LoadedPrefix> LoadPrefix(Engine* engine, const std::string& path,
                                        const std::string& cache_salt, bool pin);

}  // namespace llm
