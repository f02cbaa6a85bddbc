// The first part's metadata and the tensor tables of all become one header, made in memory; data is
// read from the parts.
#include "src/loader/split_gguf.h"

#include <cctype>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/base/math.h"
#include "src/base/status_macros.h"
#include "src/loader/composed_file.h"
#include "src/loader/file_source.h"
#include "src/loader/gguf_writer.h"

namespace llm {
namespace {

constexpr char kCountKey[] = "split.count";
constexpr char kSuffix[] = "-00001-of-00001.gguf";  // as every part's, but for the digits
constexpr int kMaxParts = 1000;                     // each keeps a descriptor while it is read

struct PartName {
  std::string prefix;
  int count;
};

std::optional<PartName> ParsePartName(const std::string& path) {
  const size_t length = sizeof(kSuffix) - 1;
  if (path.size() <= length) return std::nullopt;
  const std::string suffix = path.substr(path.size() - length);
  int count = 0;
  for (size_t i = 0; i < length; ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(kSuffix[i])) != 0;
    if (digit ? suffix[i] < '0' || suffix[i] > '9' : suffix[i] != kSuffix[i]) return std::nullopt;
    if (digit && i > 7) count = 10 * count + (suffix[i] - '0');
  }
  return PartName{path.substr(0, path.size() - length), count};
}

std::string PartPath(const PartName& name, int index) {
  char suffix[sizeof(kSuffix) + 16];
  std::snprintf(suffix, sizeof(suffix), "-%05d-of-%05d.gguf", index + 1, name.count);
  return name.prefix + suffix;
}

struct Part {
  std::unique_ptr<ModelFile> file;
  GgufContents contents;
};

absl::StatusOr<Part> OpenPart(const std::string& path, const LoaderLimits& limits) {
  Part part;
  LLM_ASSIGN_OR_RETURN(part.file, OpenModelFile(path));
  absl::StatusOr<GgufContents> contents = ReadGgufHeader(*part.file, part.file->size(), limits);
  if (!contents.ok()) return At(absl::StrCat("gguf ", path), contents.status());
  part.contents = *std::move(contents);
  return part;
}

absl::Status CheckKey(const Metadata& metadata, const char* key, int64_t expected) {
  LLM_ASSIGN_OR_RETURN(const int64_t value, metadata.GetInt(key));
  if (value == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("metadata key ", key, ": expected ", expected, ", the part has ", value));
}

absl::Status CheckPart(const Part& part, const PartName& name, int index) {
  const Metadata& metadata = *part.contents.metadata;
  absl::Status status = CheckKey(metadata, kCountKey, name.count);
  if (status.ok()) status = CheckKey(metadata, "split.no", index);
  return status.ok() ? status : At(absl::StrCat("gguf ", part.file->name()), status);
}

absl::StatusOr<std::vector<Part>> OpenParts(const PartName& name, const LoaderLimits& limits) {
  std::vector<Part> parts;
  uint64_t num_tensors = 0;
  for (int i = 0; i < name.count; ++i) {
    LLM_ASSIGN_OR_RETURN(Part part, OpenPart(PartPath(name, i), limits));
    LLM_RETURN_IF_ERROR(CheckPart(part, name, i));
    if (i > 0) part.contents.metadata.reset();  // the first part's is the model's
    num_tensors += part.contents.tensors.size();
    if (num_tensors > limits.max_tensors) {
      return absl::ResourceExhaustedError(absl::StrCat("gguf ", part.file->name(),
                                                       ": the parts have more than ",
                                                       limits.max_tensors, " tensors"));
    }
    parts.push_back(std::move(part));
  }
  const absl::Status total = CheckKey(*parts[0].contents.metadata, "split.tensors.count",
                                      static_cast<int64_t>(num_tensors));
  if (!total.ok()) return At(absl::StrCat("gguf ", parts[0].file->name()), total);
  return parts;
}

absl::Status CheckNames(const std::vector<Part>& parts) {
  std::map<absl::string_view, const Part*> owners;
  for (const Part& part : parts) {
    for (const TensorInfo& tensor : part.contents.tensors) {
      const auto [owner, added] = owners.emplace(tensor.name, &part);
      if (added) continue;
      return absl::InvalidArgumentError(absl::StrCat("gguf ", part.file->name(), ": tensor ",
                                                     Printable(tensor.name), ": also in ",
                                                     owner->second->file->name()));
    }
  }
  return absl::OkStatus();
}

// The key-value section of the first part, made to tell of one file.
void CopyMetadata(const GgufContents& first, GgufWriter* writer) {
  const HeaderBytes& bytes = first.metadata->bytes();
  std::string values(bytes.View(first.values));
  for (const GgufEntry& entry : first.metadata->entries()) {
    if (bytes.View(entry.key) != kCountKey) continue;
    char* value = values.data() + (entry.value.offset - first.values.offset);
    std::memset(value, 0, static_cast<size_t>(entry.value.size));
    *value = 1;  // an integer, as CheckPart saw, and little-endian
  }
  writer->CopyValues(values, first.metadata->entries().size());
}

uint64_t Alignment(const Metadata& metadata) {
  const absl::StatusOr<int64_t> alignment = metadata.GetInt("general.alignment");
  return alignment.ok() ? static_cast<uint64_t>(*alignment) : GgufWriter::kAlignment;
}

std::unique_ptr<ModelFile> Compose(const std::string& path, std::vector<Part> parts) {
  const uint64_t alignment = Alignment(*parts[0].contents.metadata);
  GgufWriter writer;
  CopyMetadata(parts[0].contents, &writer);
  std::vector<FilePart> placed(1);  // the header's place
  std::vector<std::unique_ptr<ModelFile>> files;
  uint64_t end = 0;
  for (Part& part : parts) {
    for (const TensorInfo& tensor : part.contents.tensors) {
      writer.AddTensor(tensor.name, tensor.format, tensor.shape, end);
      placed.push_back({end, tensor.size_bytes, part.file.get(), tensor.file_offset});
      end = RoundUp(end + tensor.size_bytes, alignment);
    }
    files.push_back(std::move(part.file));
  }
  std::string header = writer.Finish(alignment);
  for (size_t i = 1; i < placed.size(); ++i) placed[i].begin += header.size();
  placed[0].size_bytes = header.size();
  placed[0].derived = std::make_shared<HeldBytes>(std::move(header));
  return std::make_unique<ComposedFile>(path, std::move(placed), std::move(files));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ModelFile>> OpenGgufParts(const std::string& path,
                                                         const LoaderLimits& limits) {
  const std::optional<PartName> name = ParsePartName(path);
  if (!name.has_value() || name->count < 2) return OpenModelFile(path);
  LLM_ASSIGN_OR_RETURN(const Part named, OpenPart(path, limits));
  // Only the name of a part: a whole file.
  if (!named.contents.metadata->Has(kCountKey)) return OpenModelFile(path);
  if (name->count > kMaxParts) {
    return absl::UnimplementedError(
        absl::StrCat("gguf ", path, ": more than ", kMaxParts, " parts"));
  }
  LLM_ASSIGN_OR_RETURN(std::vector<Part> parts, OpenParts(*name, limits));
  LLM_RETURN_IF_ERROR(CheckNames(parts));
  return Compose(path, std::move(parts));
}

}  // namespace llm
