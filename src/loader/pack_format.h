// A pack file: a GGUF file's header and its weights as one backend lays them out, so that opening
// it is reading. Numbers are little-endian.
//
//   PackHeader
//   the GGUF header, byte for byte   [gguf_bytes]
//   zeros up to a multiple of 8, then PackTensor [num_tensors], in the order of the GGUF header
//   zeros up to weights_offset
//   the weights                      [weights_bytes]: an image of Weights::bytes
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace llm {

// Eight bytes that no text and no other model format begins with.
inline constexpr char kPackMagic[8] = {'\x89', 'L', 'L', 'M', 'P', 'A', 'C', 'K'};
inline constexpr uint32_t kPackVersion = 1;
// Of the weights in the file: the pages of every machine that we know divide it.
inline constexpr uint64_t kPackAlignment = 64 << 10;
// Of a tensor in the weights; zeros fill the gaps.
inline constexpr uint64_t kPackTensorAlignment = 64;
inline constexpr size_t kNumericsIdBytes = 64;

struct PackHeader {
  char magic[8];
  uint32_t version;
  uint32_t reserved;                   // 0
  char numerics_id[kNumericsIdBytes];  // NumericsId of the backend, then zeros
  uint64_t file_bytes;
  uint64_t source_bytes;    // of the GGUF file that it was made from
  uint64_t gguf_bytes;      // of that file's header
  uint64_t num_tensors;     // likewise
  uint64_t weights_offset;  // a multiple of kPackAlignment
  uint64_t weights_bytes;
  uint64_t checksum;  // Checksum of all bytes before weights_offset, with this field 0
};
static_assert(sizeof(PackHeader) == 136);

struct PackTensor {
  uint64_t offset;    // from weights_offset, a multiple of kPackTensorAlignment
  uint64_t bytes;     // padding excluded
  uint64_t checksum;  // Checksum of them and their padding
};
static_assert(sizeof(PackTensor) == 24);

}  // namespace llm
