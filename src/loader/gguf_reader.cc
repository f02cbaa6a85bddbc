// Preamble, metadata, tensor table, padding, data: in this order, each checked before the next is
// looked at.
#include "src/loader/gguf_reader.h"

#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/base/dcheck.h"
#include "src/base/math.h"
#include "src/loader/file_source.h"
#include "src/loader/gguf_cursor.h"
#include "src/loader/gguf_metadata.h"
#include "src/loader/gguf_tensors.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

static_assert(std::endian::native == std::endian::little,
              "numbers are read as they lie in the file");

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr int64_t kDefaultAlignment = 32;
constexpr int64_t kMaxAlignment = 4096;

struct Preamble {
  uint64_t num_tensors;
  uint64_t num_metadata;
};

absl::Status CheckVersion(uint32_t version) {
  if (version == 2 || version == 3) return absl::OkStatus();
  // Versions are small: a zero low half means that the bytes stand in the other order.
  if (version != 0 && (version & 0xffff) == 0) {
    return absl::UnimplementedError("big-endian files are not supported");
  }
  return absl::UnimplementedError(
      absl::StrCat("version ", version, " is not supported, only 2 and 3"));
}

absl::StatusOr<Preamble> ParsePreamble(GgufCursor* cursor) {
  LLM_ASSIGN_OR_RETURN(const uint32_t magic, cursor->Number<uint32_t>("magic"));
  if (magic != kMagic) return absl::InvalidArgumentError("does not begin with \"GGUF\"");
  LLM_ASSIGN_OR_RETURN(const uint32_t version, cursor->Number<uint32_t>("version"));
  LLM_RETURN_IF_ERROR(CheckVersion(version));
  Preamble preamble;
  LLM_ASSIGN_OR_RETURN(preamble.num_tensors, cursor->Number<uint64_t>("tensor count"));
  LLM_ASSIGN_OR_RETURN(preamble.num_metadata, cursor->Number<uint64_t>("metadata count"));
  return preamble;
}

absl::StatusOr<uint64_t> DataAlignment(const Metadata& metadata) {
  constexpr absl::string_view kKey = "general.alignment";
  if (!metadata.Has(kKey)) return kDefaultAlignment;
  const absl::StatusOr<int64_t> alignment = metadata.GetInt(kKey);
  if (!alignment.ok() || !IsPowerOfTwo(*alignment) || *alignment > kMaxAlignment) {
    return absl::InvalidArgumentError(
        absl::StrCat("metadata key ", kKey, ": no power of two up to ", kMaxAlignment));
  }
  return static_cast<uint64_t>(*alignment);
}

}  // namespace

absl::StatusOr<GgufContents> ReadGgufHeader(const ModelFile& file, uint64_t file_bytes,
                                            const LoaderLimits& limits) {
  // In a pack the header is a file of its own, and read at once.
  const uint64_t first_bytes = file.size() < file_bytes ? file.size() : 0;
  GgufCursor cursor(file, limits.max_header_bytes, first_bytes);
  LLM_ASSIGN_OR_RETURN(const Preamble preamble, ParsePreamble(&cursor));
  const uint64_t values_begin = cursor.position();
  LLM_ASSIGN_OR_RETURN(std::vector<GgufEntry> entries,
                       ParseGgufMetadata(&cursor, preamble.num_metadata, limits));
  const uint64_t values_end = cursor.position();
  LLM_ASSIGN_OR_RETURN(const std::vector<GgufTensorRecord> records,
                       ParseGgufTensors(&cursor, preamble.num_tensors, limits));
  const uint64_t header_bytes = cursor.position();
  LLM_ASSIGN_OR_RETURN(HeaderBytes bytes, cursor.Take());
  GgufContents contents;
  contents.values = {values_begin, values_end - values_begin};
  LLM_ASSIGN_OR_RETURN(contents.metadata,
                       GgufMetadata::Create(std::move(bytes), std::move(entries), file.name()));
  LLM_ASSIGN_OR_RETURN(const uint64_t alignment, DataAlignment(*contents.metadata));
  const GgufDataSection data = {RoundUp(header_bytes, alignment), file_bytes, alignment};
  LLM_ASSIGN_OR_RETURN(contents.tensors,
                       ResolveGgufTensors(records, contents.metadata->bytes(), data));
  return contents;
}

absl::StatusOr<std::unique_ptr<WeightSource>> OpenGguf(std::unique_ptr<ModelFile> file,
                                                       const LoaderLimits& limits) {
  LLM_DCHECK(file != nullptr);
  const std::string where = absl::StrCat("gguf ", file->name());
  absl::StatusOr<GgufContents> contents = ReadGgufHeader(*file, file->size(), limits);
  if (!contents.ok()) return At(where, contents.status());
  auto source = std::make_unique<FileSource>(where, std::move(file), *std::move(contents));
  if (absl::Status indexed = source->BuildIndex(); !indexed.ok()) return At(where, indexed);
  return source;
}

}  // namespace llm
