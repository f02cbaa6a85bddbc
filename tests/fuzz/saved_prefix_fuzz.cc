// Any bytes as a saved prefix: read, or refused with a message.
//
// The first byte says what becomes of the rest. Even: that is the file. Odd: sizes and checksums
// are made to fit, so that the checks behind them are reached.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "src/base/xxh64.h"
#include "src/engine/saved_prefix.h"

namespace llm {
namespace {

constexpr int64_t kMaxTokens = 256;

KvIdentity Identity() {
  KvIdentity identity;
  identity.model_id = 0x1111111111111111;
  identity.numerics_id = "reference:1";
  identity.kv_dtype = "f16";
  identity.shape.block_size = 4;
  identity.shape.groups = {{.window = 0, .num_layers = 1, .block_bytes = 24},
                           {.window = 6, .num_layers = 2, .block_bytes = 48}};
  return identity;
}

// Behind the tokens lie blocks of 24 bytes with their checksums, where they are of that size.
void Complete(std::string* bytes) {
  SavedPrefixHeader header;
  if (bytes->size() < sizeof(header)) return;
  std::memcpy(&header, bytes->data(), sizeof(header));
  header.num_tokens %= static_cast<uint32_t>(kMaxTokens) + 8u;
  header.num_groups %= 4;
  const size_t groups = header.num_groups * sizeof(SavedPrefixGroup);
  const size_t tokens = (header.num_tokens * sizeof(int32_t) + 7) / 8 * 8;
  bytes->resize(std::max(bytes->size(), sizeof(header) + groups + tokens));
  header.file_bytes = bytes->size();
  header.checksum = 0;
  std::memcpy(bytes->data(), &header, sizeof(header));
  header.checksum = Checksum(bytes->data(), sizeof(header) + groups + tokens);
  std::memcpy(bytes->data(), &header, sizeof(header));
}

std::string Walk(const std::string& bytes) {
  Allocator allocator;
  const auto file = MemoryModelFile(bytes.data(), bytes.size(), "memory");
  const auto image = ReadSavedPrefix(*file, Identity(), kMaxTokens, &allocator);
  if (!image.ok()) return image.status().message().empty() ? "refused without a message" : "";
  const size_t num_tokens = (*image)->tokens().size();
  if (num_tokens == 0 || num_tokens > kMaxTokens || num_tokens % 4 != 0) return "a wrong length";
  if (allocator.allocated_bytes() > bytes.size()) return "more memory than the file has bytes";
  uint64_t sum = 0;
  for (int32_t index = 0; index < (*image)->num_blocks(); ++index) {
    for (int group = 0; group < 2; ++group) {
      const std::byte* block = (*image)->block(index, group);
      const size_t size = group == 0 ? 24 : 48;
      for (size_t i = 0; block != nullptr && i < size; ++i) sum += static_cast<uint64_t>(block[i]);
    }
  }
  return sum == UINT64_MAX ? "impossible" : "";
}

}  // namespace
}  // namespace llm

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1) llm::Complete(&bytes);
  const std::string fault = llm::Walk(bytes);
  if (!fault.empty()) {
    std::fprintf(stderr, "saved_prefix_fuzz: %s\n", fault.c_str());
    std::abort();
  }
  return 0;
}
