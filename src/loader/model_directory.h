// A folder of files that make up one model, as hubs hand them out. Nothing outside of it is opened.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/loader/json_document.h"
#include "src/loader/model_file.h"

namespace llm {

// True for a path that is, or links to, a directory.
bool IsDirectory(const std::string& path);

class ModelDirectory {
 public:
  // NOT_FOUND or PERMISSION_DENIED, naming the path.
  static absl::StatusOr<ModelDirectory> Open(const std::string& path);

  const std::string& path() const { return path_; }
  bool Has(absl::string_view name) const;
  // `name` is a plain file name. INVALID_ARGUMENT for another one, and for a link that leads out of
  // the directory (and of the store that it is a view of: `x/blobs` for `x/snapshots/<revision>`).
  absl::StatusOr<std::unique_ptr<ModelFile>> OpenFile(absl::string_view name) const;
  // The whole file; RESOURCE_EXHAUSTED when it is larger than `max_bytes`.
  absl::StatusOr<std::string> ReadText(absl::string_view name, uint64_t max_bytes) const;
  // Messages begin with the name.
  absl::StatusOr<JsonDocument> ReadJson(absl::string_view name, uint64_t max_bytes) const;

 private:
  ModelDirectory(std::string path, std::string real_path)
      : path_(std::move(path)), real_path_(std::move(real_path)) {}

  const std::string path_;
  const std::string real_path_;  // without links
};

}  // namespace llm
