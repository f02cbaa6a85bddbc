// Links are resolved first and the result is opened, so that what is checked is what is read.
#include "src/loader/model_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "src/base/status_macros.h"
#include "src/loader/gguf_types.h"

namespace llm {
namespace {

absl::StatusOr<std::string> RealPath(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), &std::free);
  if (real == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  return std::string(real.get());
}

std::string Parent(const std::string& path) { return path.substr(0, path.rfind('/')); }

absl::Status CheckName(absl::string_view name) {
  constexpr absl::string_view kSeparators("/\0\\", 3);
  if (!name.empty() && name.size() <= NAME_MAX && name != "." && name != ".." &&
      name.find_first_of(kSeparators) == absl::string_view::npos) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      Printable(name), " is no plain file name: only files of the directory are read"));
}

}  // namespace

bool IsDirectory(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

absl::StatusOr<ModelDirectory> ModelDirectory::Open(const std::string& path) {
  if (path.find('\0') != std::string::npos) {
    return absl::InvalidArgumentError("cannot open a path with a NUL character in it");
  }
  LLM_ASSIGN_OR_RETURN(std::string real, RealPath(path));
  std::string shown(absl::StripSuffix(path, "/"));
  return ModelDirectory(std::move(shown), std::move(real));
}

bool ModelDirectory::Has(absl::string_view name) const {
  return access(absl::StrCat(path_, "/", name).c_str(), F_OK) == 0;
}

absl::StatusOr<std::unique_ptr<ModelFile>> ModelDirectory::OpenFile(absl::string_view name) const {
  LLM_RETURN_IF_ERROR(CheckName(name));
  LLM_ASSIGN_OR_RETURN(const std::string real, RealPath(absl::StrCat(path_, "/", name)));
  bool inside = absl::StartsWith(real, absl::StrCat(real_path_, "/"));
  if (const std::string above = Parent(real_path_); absl::EndsWith(above, "/snapshots")) {
    inside = inside || absl::StartsWith(real, absl::StrCat(Parent(above), "/blobs/"));
  }
  if (!inside) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, "/", name, ": a link that leads out of the directory"));
  }
  return OpenModelFile(real);
}

absl::StatusOr<std::string> ModelDirectory::ReadText(absl::string_view name,
                                                     uint64_t max_bytes) const {
  LLM_ASSIGN_OR_RETURN(const std::unique_ptr<ModelFile> file, OpenFile(name));
  if (file->size() > max_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(name, ": ", file->size(), " bytes, more than the limit of ", max_bytes));
  }
  std::string text(static_cast<size_t>(file->size()), '\0');
  LLM_RETURN_IF_ERROR(file->Read(0, file->size(), text.data()));
  return text;
}

absl::StatusOr<JsonDocument> ModelDirectory::ReadJson(absl::string_view name,
                                                      uint64_t max_bytes) const {
  LLM_ASSIGN_OR_RETURN(const std::string text, ReadText(name, max_bytes));
  absl::StatusOr<JsonDocument> document = JsonDocument::Parse(text);
  if (!document.ok()) return At(name, document.status());
  return document;
}

}  // namespace llm
