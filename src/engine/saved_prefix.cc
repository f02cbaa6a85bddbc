// What is refused is refused before memory is taken for it; checksums find damage, and nothing is
// believed because of them.
#include "src/engine/saved_prefix.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/atomic_file.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"

namespace llm {
namespace {

struct Fields {
  SavedPrefixHeader header;
  std::vector<SavedPrefixGroup> groups;
  std::vector<int32_t> tokens;
};

absl::Status Malformed(absl::string_view field, uint64_t value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("header: ", field, " ", value, " ", why));
}

absl::Status Differs(absl::string_view what, absl::string_view file, absl::string_view engine) {
  return absl::FailedPreconditionError(
      absl::StrCat("saved for ", what, " ", file, ", this engine has ", engine));
}

uint64_t TokenBytes(uint64_t num_tokens) {
  return RoundUp<uint64_t>(num_tokens * sizeof(int32_t), 8);
}

uint64_t ChecksumOf(const Fields& fields) {
  SavedPrefixHeader header = fields.header;
  header.checksum = 0;
  Xxh64 hash;
  hash.Add(&header, sizeof(header));
  hash.Add(fields.groups.data(), fields.groups.size() * sizeof(SavedPrefixGroup));
  hash.Add(fields.tokens.data(), fields.tokens.size() * sizeof(int32_t));
  return hash.Digest();
}

// Zeros follow the text. `text` of as many bytes as the field has is cut: no identity is so long.
template <size_t kSize>
void SetText(const std::string& text, char (&field)[kSize]) {
  std::memcpy(field, text.data(), std::min(text.size(), kSize));
}

// As far as it is printable: it stands in messages.
template <size_t kSize>
std::string TextOf(const char (&field)[kSize]) {
  std::string text(field, std::find(field, field + kSize, '\0'));
  for (char& c : text) c = c > ' ' && c < '\x7f' ? c : '?';
  return text;
}

template <size_t kSize>
bool SameText(const char (&field)[kSize], const std::string& text) {
  char wanted[kSize] = {};
  SetText(text, wanted);
  return text.size() <= kSize && std::memcmp(field, wanted, kSize) == 0;
}

absl::Status CheckSizes(const SavedPrefixHeader& header, const ModelFile& file,
                        int64_t max_tokens) {
  if (header.file_bytes != file.size()) {
    return absl::DataLossError(absl::StrCat("the file has ", file.size(),
                                            " bytes, its header says ", header.file_bytes,
                                            ": it is cut or grown"));
  }
  constexpr uint32_t kMaxGroups = 16;
  if (header.num_groups < 1 || header.num_groups > kMaxGroups) {
    return Malformed("num_groups", header.num_groups, "is not 1 to 16");
  }
  if (header.block_size == 0 || header.num_tokens == 0 ||
      header.num_tokens % header.block_size != 0) {
    return Malformed("num_tokens", header.num_tokens,
                     absl::StrCat("is no multiple of block_size ", header.block_size));
  }
  if (header.num_tokens > static_cast<uint64_t>(std::max<int64_t>(0, max_tokens))) {
    return absl::FailedPreconditionError(absl::StrCat(
        "holds ", header.num_tokens, " tokens, this engine's context is ", max_tokens));
  }
  const uint64_t bytes =
      sizeof(header) + header.num_groups * sizeof(SavedPrefixGroup) + TokenBytes(header.num_tokens);
  if (bytes <= file.size()) return absl::OkStatus();
  return Malformed("num_tokens", header.num_tokens, "do not fit the file");
}

absl::StatusOr<Fields> ReadFields(const ModelFile& file, int64_t max_tokens) {
  Fields fields = {};
  SavedPrefixHeader& header = fields.header;
  if (file.size() < sizeof(header)) {
    return absl::DataLossError(absl::StrCat("the file has ", file.size(), " bytes, less than the ",
                                            sizeof(header), " of its header"));
  }
  LLM_RETURN_IF_ERROR(file.Read(0, sizeof(header), &header));
  if (std::memcmp(header.magic, kSavedPrefixMagic, sizeof(kSavedPrefixMagic)) != 0) {
    return absl::InvalidArgumentError("does not begin as a saved prefix");
  }
  if (header.version != kSavedPrefixVersion) {
    return absl::FailedPreconditionError(absl::StrCat("format version ", header.version,
                                                      ", this library reads ", kSavedPrefixVersion,
                                                      " alone: save the prefix again"));
  }
  LLM_RETURN_IF_ERROR(CheckSizes(header, file, max_tokens));
  fields.groups.resize(header.num_groups);
  fields.tokens.resize(TokenBytes(header.num_tokens) / sizeof(int32_t));
  const uint64_t groups_bytes = header.num_groups * sizeof(SavedPrefixGroup);
  LLM_RETURN_IF_ERROR(file.Read(sizeof(header), groups_bytes, fields.groups.data()));
  LLM_RETURN_IF_ERROR(file.Read(sizeof(header) + groups_bytes, TokenBytes(header.num_tokens),
                                fields.tokens.data()));
  if (ChecksumOf(fields) != header.checksum) {
    return absl::DataLossError("header: the checksum does not match: the file is damaged");
  }
  fields.tokens.resize(header.num_tokens);
  return fields;
}

absl::Status CheckIdentity(const Fields& fields, const KvIdentity& identity) {
  const SavedPrefixHeader& header = fields.header;
  // Weights that are packed for other kernels are another model's: the kernels are named first.
  if (!SameText(header.numerics_id, identity.numerics_id)) {
    return Differs("kernels", TextOf(header.numerics_id), identity.numerics_id);
  }
  if (header.model_id != identity.model_id) {
    return Differs("model", absl::StrCat(absl::Hex(header.model_id)),
                   absl::StrCat(absl::Hex(identity.model_id)));
  }
  if (!SameText(header.kv_dtype, identity.kv_dtype)) {
    return Differs("kv_dtype", TextOf(header.kv_dtype), identity.kv_dtype);
  }
  if (header.block_size != static_cast<uint32_t>(identity.shape.block_size)) {
    return Differs("block_size", absl::StrCat(header.block_size),
                   absl::StrCat(identity.shape.block_size));
  }
  std::vector<KvGroupShape> groups;
  for (const SavedPrefixGroup& group : fields.groups) {
    groups.push_back({.window = static_cast<int32_t>(group.window),
                      .num_layers = static_cast<int32_t>(group.num_layers),
                      .block_bytes = group.block_bytes});
  }
  if (groups == identity.shape.groups) return absl::OkStatus();
  return absl::FailedPreconditionError("its kv groups are not those of this engine");
}

// Calls visit(bytes, size) for each block in the order of the file.
template <typename Visit>
absl::Status ForEachBlock(const KvImage& image, Visit visit) {
  for (int32_t index = 0; index < image.num_blocks(); ++index) {
    for (size_t g = 0; g < image.shape().groups.size(); ++g) {
      std::byte* bytes = image.block(index, static_cast<int>(g));
      if (bytes == nullptr) continue;
      LLM_RETURN_IF_ERROR(visit(index, bytes, image.shape().groups[g].block_bytes));
    }
  }
  return absl::OkStatus();
}

// Of the file, with a checksum behind each block.
absl::StatusOr<uint64_t> FileBytes(const KvShape& shape, int32_t num_tokens) {
  KvShape with_checksums = shape;
  for (KvGroupShape& group : with_checksums.groups) group.block_bytes += sizeof(uint64_t);
  LLM_ASSIGN_OR_RETURN(const size_t blocks, KvImage::Bytes(with_checksums, num_tokens));
  return blocks + sizeof(SavedPrefixHeader) + shape.groups.size() * sizeof(SavedPrefixGroup) +
         TokenBytes(static_cast<uint64_t>(num_tokens));
}

absl::StatusOr<std::shared_ptr<KvImage>> Parse(const ModelFile& file, const KvIdentity& identity,
                                               int64_t max_tokens, Allocator* allocator) {
  LLM_ASSIGN_OR_RETURN(const Fields fields, ReadFields(file, max_tokens));
  LLM_RETURN_IF_ERROR(CheckIdentity(fields, identity));
  const auto num_tokens = static_cast<int32_t>(fields.tokens.size());
  LLM_ASSIGN_OR_RETURN(const uint64_t bytes, FileBytes(identity.shape, num_tokens));
  if (bytes != file.size()) {
    return absl::InvalidArgumentError(absl::StrCat("header: ", num_tokens, " tokens take ", bytes,
                                                   " bytes, the file has ", file.size()));
  }
  uint64_t at = sizeof(fields.header) + fields.groups.size() * sizeof(SavedPrefixGroup) +
                TokenBytes(fields.header.num_tokens);
  LLM_ASSIGN_OR_RETURN(
      std::shared_ptr<KvImage> image,
      KvImage::Create(allocator, identity.shape, fields.tokens, fields.header.variant));
  const absl::Status read =
      ForEachBlock(*image, [&](int32_t index, std::byte* block, size_t size) -> absl::Status {
        uint64_t checksum = 0;
        LLM_RETURN_IF_ERROR(file.Read(at, size, block));
        LLM_RETURN_IF_ERROR(file.Read(at + size, sizeof(checksum), &checksum));
        at += size + sizeof(checksum);
        if (Checksum(block, size) == checksum) return absl::OkStatus();
        return absl::DataLossError(
            absl::StrCat("block ", index, ": the checksum does not match: the file is damaged"));
      });
  if (!read.ok()) return read;
  return image;
}

}  // namespace

absl::Status WriteSavedPrefix(const KvImage& image, const KvIdentity& identity,
                              const std::string& path) {
  Fields fields = {};
  SavedPrefixHeader& header = fields.header;
  const auto num_tokens = static_cast<int32_t>(image.tokens().size());
  std::memcpy(header.magic, kSavedPrefixMagic, sizeof(header.magic));
  header.version = kSavedPrefixVersion;
  header.block_size = static_cast<uint32_t>(image.shape().block_size);
  SetText(identity.numerics_id, header.numerics_id);
  SetText(identity.kv_dtype, header.kv_dtype);
  header.model_id = identity.model_id;
  header.variant = image.variant();
  LLM_ASSIGN_OR_RETURN(header.file_bytes, FileBytes(image.shape(), num_tokens));
  header.num_tokens = static_cast<uint32_t>(num_tokens);
  header.num_groups = static_cast<uint32_t>(image.shape().groups.size());
  for (const KvGroupShape& group : image.shape().groups) {
    fields.groups.push_back({.window = static_cast<uint32_t>(group.window),
                             .num_layers = static_cast<uint32_t>(group.num_layers),
                             .block_bytes = group.block_bytes});
  }
  fields.tokens = image.tokens();
  fields.tokens.resize(TokenBytes(header.num_tokens) / sizeof(int32_t));
  header.checksum = ChecksumOf(fields);
  LLM_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, /*mode=*/0600));
  LLM_RETURN_IF_ERROR(file.Write(&header, sizeof(header)));
  LLM_RETURN_IF_ERROR(
      file.Write(fields.groups.data(), fields.groups.size() * sizeof(SavedPrefixGroup)));
  LLM_RETURN_IF_ERROR(file.Write(fields.tokens.data(), fields.tokens.size() * sizeof(int32_t)));
  const absl::Status written =
      ForEachBlock(image, [&](int32_t, const std::byte* block, size_t size) -> absl::Status {
        const uint64_t checksum = Checksum(block, size);
        LLM_RETURN_IF_ERROR(file.Write(block, size));
        return file.Write(&checksum, sizeof(checksum));
      });
  if (!written.ok()) return written;
  return file.Commit();
}

namespace {

absl::Status Named(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("prefix ", path, ": ", status.message()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<KvImage>> ReadSavedPrefix(const ModelFile& file,
                                                         const KvIdentity& identity,
                                                         int64_t max_tokens, Allocator* allocator) {
  absl::StatusOr<std::shared_ptr<KvImage>> image = Parse(file, identity, max_tokens, allocator);
  if (image.ok()) return image;
  return Named(file.name(), image.status());
}

absl::Status SavePrefix(Engine* engine, RequestSpec prefix, const std::string& path) {
  const CallCount::Scope inside(engine->calls());  // the image lies in the engine's memory
  LLM_ASSIGN_OR_RETURN(const std::shared_ptr<const KvImage> image,
                       engine->ReadPrefix(std::move(prefix)));
  return WriteSavedPrefix(*image, engine->kv_identity(), path);
}

absl::StatusOr<LoadedPrefix> LoadPrefix(Engine* engine, const std::string& path,
                                        const std::string& cache_salt, bool pin) {
  const CallCount::Scope inside(engine->calls());
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<ModelFile> file, OpenModelFile(path));
  const KvIdentity identity = engine->kv_identity();
  LLM_ASSIGN_OR_RETURN(
      std::shared_ptr<KvImage> image,
      ReadSavedPrefix(*file, identity, engine->max_context_tokens(), engine->allocator()));
  LoadedPrefix loaded;
  loaded.num_tokens = image->tokens().size();
  const absl::StatusOr<uint64_t> pin_id = engine->RestorePrefix(std::move(image), cache_salt, pin);
  if (!pin_id.ok()) return Named(path, pin_id.status());
  loaded.pin_id = *pin_id;
  return loaded;
}

}  // namespace llm
