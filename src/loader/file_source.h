// A model file whose header has been read: the one WeightSource of GGUF files and packs.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/loader/gguf_metadata.h"
#include "src/loader/gguf_reader.h"
#include "src/loader/model_file.h"
#include "src/loader/weight_source.h"

namespace llm {

// What a GGUF header tells.
struct GgufContents {
  std::unique_ptr<GgufMetadata> metadata;
  std::vector<TensorInfo> tensors;
  ByteRange values;  // the key-value section
};

// `file` begins with the header; tensors must lie within `file_bytes` of the whole GGUF file.
// Errors as OpenGguf's, without the file's name.
absl::StatusOr<GgufContents> ReadGgufHeader(const ModelFile& file, uint64_t file_bytes,
                                            const LoaderLimits& limits);

class FileSource final : public WeightSource {
 public:
  // `where` begins messages: "gguf x.gguf".
  FileSource(std::string where, std::unique_ptr<ModelFile> file, GgufContents contents)
      : where_(std::move(where)),
        file_(std::move(file)),
        metadata_(std::move(contents.metadata)),
        tensors_(std::move(contents.tensors)) {}

  // INVALID_ARGUMENT when a name is there twice.
  absl::Status BuildIndex();
  // Makes it a pack's: tensors_[i] then says where the packed form lies. Before the first use.
  void SetPacked(PackedImage image) {
    packed_ = std::move(image);
    packed_->file = file_.get();
  }

  const Metadata& metadata() const override { return *metadata_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* Find(absl::string_view name) const override;
  const PackedImage* packed() const override { return packed_ ? &*packed_ : nullptr; }
  GgufHeaderBytes header() const override;
  absl::Status Read(const TensorInfo& tensor, uint64_t offset, uint64_t size,
                    void* dst) const override;

 private:
  const std::string where_;
  const std::unique_ptr<ModelFile> file_;
  const std::unique_ptr<GgufMetadata> metadata_;
  const std::vector<TensorInfo> tensors_;
  std::map<absl::string_view, const TensorInfo*> index_;  // by name
  std::optional<PackedImage> packed_;
};

}  // namespace llm
