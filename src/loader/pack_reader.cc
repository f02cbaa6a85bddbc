// The checksum finds damage; nothing is believed because of it, since whoever writes a hostile file
// writes the checksum as well.
#include "src/loader/pack_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/base/xxh64.h"
#include "src/loader/file_source.h"
#include "src/loader/gguf_types.h"
#include "src/loader/pack_format.h"

namespace llm {
namespace {

struct PackFields {
  PackHeader header;
  std::string numerics_id;
  uint64_t index_offset = 0;  // of PackTensor [num_tensors], behind the GGUF header
};

absl::Status Malformed(absl::string_view field, uint64_t value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("header: ", field, " ", value, " ", why));
}

absl::StatusOr<std::string> ReadNumericsId(const PackHeader& header) {
  const char* end = std::find(header.numerics_id, header.numerics_id + kNumericsIdBytes, '\0');
  const std::string id(header.numerics_id, static_cast<size_t>(end - header.numerics_id));
  const bool printable =
      std::all_of(id.begin(), id.end(), [](char c) { return c > ' ' && c < '\x7f'; });
  const bool padded =
      std::all_of(end, header.numerics_id + kNumericsIdBytes, [](char c) { return c == 0; });
  if (!id.empty() && printable && padded) return id;
  return absl::InvalidArgumentError("header: numerics_id is no name padded with zeros");
}

absl::Status CheckSizes(const PackHeader& header, const ModelFile& file, const LoaderLimits& limits,
                        PackFields* fields) {
  if (header.file_bytes != file.size()) {
    return absl::DataLossError(absl::StrCat("the file has ", file.size(),
                                            " bytes, its header says ", header.file_bytes,
                                            ": it is cut or grown"));
  }
  if (header.weights_offset % kPackAlignment != 0 || header.weights_offset > header.file_bytes) {
    return Malformed("weights_offset", header.weights_offset,
                     absl::StrCat("is no multiple of ", kPackAlignment, " within the file"));
  }
  if (header.weights_bytes != header.file_bytes - header.weights_offset) {
    return Malformed("weights_bytes", header.weights_bytes,
                     absl::StrCat("is not what follows weights_offset: ",
                                  header.file_bytes - header.weights_offset));
  }
  if (header.weights_bytes % kPackTensorAlignment != 0) {
    return Malformed("weights_bytes", header.weights_bytes,
                     absl::StrCat("is no multiple of ", kPackTensorAlignment));
  }
  if (header.weights_offset > limits.max_header_bytes) {
    return Malformed("weights_offset", header.weights_offset,
                     absl::StrCat("is beyond the limit for headers of ", limits.max_header_bytes));
  }
  if (header.num_tensors > limits.max_tensors) {
    return Malformed("num_tensors", header.num_tensors,
                     absl::StrCat("is more than the limit of ", limits.max_tensors));
  }
  // weights_offset bounds what follows, so that no sum wraps.
  const uint64_t room = header.weights_offset;
  if (header.gguf_bytes > room || header.num_tensors > room / sizeof(PackTensor) ||
      RoundUp(sizeof(PackHeader) + header.gguf_bytes, uint64_t{8}) +
              header.num_tensors * sizeof(PackTensor) >
          room) {
    return absl::InvalidArgumentError(absl::StrCat("header: gguf_bytes ", header.gguf_bytes,
                                                   " and num_tensors ", header.num_tensors,
                                                   " do not fit before weights_offset ", room));
  }
  const uint64_t tail_offset = sizeof(PackHeader) + header.gguf_bytes;
  fields->index_offset = RoundUp(tail_offset, uint64_t{8}) - tail_offset;
  return absl::OkStatus();
}

absl::StatusOr<PackFields> ReadFields(const ModelFile& file, const LoaderLimits& limits) {
  PackFields fields = {};
  PackHeader& header = fields.header;
  if (file.size() < sizeof(header)) {
    return absl::DataLossError(absl::StrCat("the file has ", file.size(), " bytes, less than the ",
                                            sizeof(header), " of its header"));
  }
  LLM_RETURN_IF_ERROR(file.Read(0, sizeof(header), &header));
  if (std::memcmp(header.magic, kPackMagic, sizeof(kPackMagic)) != 0) {
    return absl::InvalidArgumentError("does not begin as a pack");
  }
  if (header.version != kPackVersion) {
    return absl::FailedPreconditionError(absl::StrCat("format version ", header.version,
                                                      ", this library reads ", kPackVersion,
                                                      " alone: pack the model again"));
  }
  if (header.reserved != 0) return Malformed("reserved", header.reserved, "is not 0");
  LLM_RETURN_IF_ERROR(CheckSizes(header, file, limits, &fields));
  LLM_ASSIGN_OR_RETURN(fields.numerics_id, ReadNumericsId(header));
  return fields;
}

// The GGUF header inside the pack, as a file of its own.
class GgufPart final : public ModelFile {
 public:
  GgufPart(const ModelFile& pack, uint64_t size) : pack_(pack), size_(size) {}
  uint64_t size() const override { return size_; }
  const std::string& name() const override { return pack_.name(); }
  absl::Status Read(uint64_t offset, uint64_t size, void* dst) const override {
    return pack_.Read(sizeof(PackHeader) + offset, size, dst);
  }

 private:
  const ModelFile& pack_;
  const uint64_t size_;
};

absl::StatusOr<GgufContents> ReadContents(const ModelFile& file, const PackHeader& header,
                                          const LoaderLimits& limits) {
  const GgufPart part(file, header.gguf_bytes);
  LLM_ASSIGN_OR_RETURN(GgufContents contents, ReadGgufHeader(part, header.source_bytes, limits));
  const uint64_t end = contents.metadata->bytes().size();
  if (end == header.gguf_bytes) return contents;
  return Malformed("gguf_bytes", header.gguf_bytes,
                   absl::StrCat("but its GGUF header ends at ", end));
}

// Adds bytes [begin, end) of the file.
absl::Status AddFileBytes(const ModelFile& file, uint64_t begin, uint64_t end, Xxh64* hash) {
  constexpr uint64_t kChunkBytes = 1 << 16;
  char chunk[kChunkBytes];
  for (uint64_t at = begin; at < end; at += kChunkBytes) {
    const uint64_t size = std::min(kChunkBytes, end - at);
    LLM_RETURN_IF_ERROR(file.Read(at, size, chunk));
    hash->Add(chunk, static_cast<size_t>(size));
  }
  return absl::OkStatus();
}

// `tail` is what lies between the GGUF header and the weights. The GGUF header's bytes are those
// that it was parsed from, or the file's when it could not be: damage is told before what it made.
absl::Status CheckHeaderChecksum(const ModelFile& file, const PackHeader& header,
                                 const absl::StatusOr<GgufContents>& contents,
                                 const HeaderBytes& tail) {
  PackHeader without = header;
  without.checksum = 0;
  Xxh64 hash;
  hash.Add(&without, sizeof(without));
  if (contents.ok()) {
    const HeaderBytes& gguf = contents->metadata->bytes();
    hash.Add(gguf.data(), static_cast<size_t>(gguf.size()));
  } else {
    LLM_RETURN_IF_ERROR(
        AddFileBytes(file, sizeof(header), sizeof(header) + header.gguf_bytes, &hash));
  }
  hash.Add(tail.data(), static_cast<size_t>(tail.size()));
  if (hash.Digest() == header.checksum) return absl::OkStatus();
  return absl::DataLossError("header: the checksum does not match: the file is damaged");
}

// Where one tensor's packed form lies.
absl::Status Place(const PackTensor& entry, const PackHeader& header, TensorInfo* tensor) {
  if (entry.offset % kPackTensorAlignment != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("offset ", entry.offset, " is no multiple of ", kPackTensorAlignment));
  }
  // Both bounds are multiples of the alignment: the padding lies inside as well.
  if (entry.offset > header.weights_bytes || entry.bytes > header.weights_bytes - entry.offset) {
    return absl::InvalidArgumentError(absl::StrCat(entry.bytes, " bytes at offset ", entry.offset,
                                                   " lie outside the ", header.weights_bytes,
                                                   " bytes of weights"));
  }
  tensor->file_offset = header.weights_offset + entry.offset;
  tensor->size_bytes = entry.bytes;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> PlaceTensors(const PackFields& fields,
                                                   const HeaderBytes& tail,
                                                   std::vector<TensorInfo>* tensors) {
  if (tensors->size() != fields.header.num_tensors) {
    return Malformed("num_tensors", fields.header.num_tensors,
                     absl::StrCat("but its GGUF header has ", tensors->size()));
  }
  std::vector<uint64_t> checksums;
  checksums.reserve(tensors->size());
  for (size_t i = 0; i < tensors->size(); ++i) {
    const auto entry = tail.Load<PackTensor>(fields.index_offset + i * sizeof(PackTensor));
    TensorInfo& tensor = (*tensors)[i];
    if (absl::Status placed = Place(entry, fields.header, &tensor); !placed.ok()) {
      return At(absl::StrCat("tensor ", Printable(tensor.name)), placed);
    }
    checksums.push_back(entry.checksum);
  }
  return checksums;
}

absl::StatusOr<std::unique_ptr<WeightSource>> Parse(std::string where,
                                                    std::unique_ptr<ModelFile> file,
                                                    const LoaderLimits& limits) {
  LLM_ASSIGN_OR_RETURN(PackFields fields, ReadFields(*file, limits));
  const PackHeader& header = fields.header;
  absl::StatusOr<GgufContents> contents = ReadContents(*file, header, limits);
  const uint64_t tail_offset = sizeof(header) + header.gguf_bytes;
  HeaderBytes tail;
  LLM_RETURN_IF_ERROR(tail.Resize(header.weights_offset - tail_offset));
  LLM_RETURN_IF_ERROR(file->Read(tail_offset, tail.size(), tail.data()));
  LLM_RETURN_IF_ERROR(CheckHeaderChecksum(*file, header, contents, tail));
  LLM_RETURN_IF_ERROR(contents.status());
  PackedImage image;
  image.numerics_id = std::move(fields.numerics_id);
  image.file_offset = header.weights_offset;
  image.size_bytes = header.weights_bytes;
  LLM_ASSIGN_OR_RETURN(image.checksums, PlaceTensors(fields, tail, &contents->tensors));
  auto source =
      std::make_unique<FileSource>(std::move(where), std::move(file), *std::move(contents));
  LLM_RETURN_IF_ERROR(source->BuildIndex());
  source->SetPacked(std::move(image));
  return source;
}

}  // namespace

bool IsPack(const ModelFile& file) {
  char magic[sizeof(kPackMagic)];
  return file.size() >= sizeof(magic) && file.Read(0, sizeof(magic), magic).ok() &&
         std::memcmp(magic, kPackMagic, sizeof(magic)) == 0;
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenPack(std::unique_ptr<ModelFile> file,
                                                       const LoaderLimits& limits) {
  const std::string where = absl::StrCat("pack ", file->name());
  absl::StatusOr<std::unique_ptr<WeightSource>> source = Parse(where, std::move(file), limits);
  if (!source.ok()) return At(where, source.status());
  return source;
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeightSource(std::unique_ptr<ModelFile> file,
                                                               const LoaderLimits& limits) {
  return IsPack(*file) ? OpenPack(std::move(file), limits) : OpenGguf(std::move(file), limits);
}

}  // namespace llm
