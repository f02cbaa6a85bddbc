// Reads /proc and the cgroup file systems, versions 1 and 2. Whatever is not there, or not for this
// process to read, limits nothing.
#include "src/engine/system_limits.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "src/base/status_macros.h"

namespace llm {
namespace {

// The files below a root. Where there was no descriptor left to read one, no limit is known, which
// is not the same as none: status() says so. For want of memory it throws std::bad_alloc.
class LimitFiles {
 public:
  explicit LimitFiles(const std::string& root) : root_(root) {}

  const absl::Status& status() const { return status_; }

  std::optional<std::string> Read(const std::string& path) {
    const int fd = open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
      const int error = errno;
      if (status_.ok() && (error == EMFILE || error == ENFILE)) {
        status_ = absl::ErrnoToStatus(error, absl::StrCat("limits of this process: ", path));
      }
      return std::nullopt;
    }
    const absl::Cleanup closer = [fd] { close(fd); };
    std::string text;
    char buffer[4096];
    while (true) {
      const ssize_t size = read(fd, buffer, sizeof(buffer));
      if (size < 0 && errno == EINTR) continue;
      if (size < 0) return std::nullopt;
      if (size == 0) return text;
      text.append(buffer, static_cast<size_t>(size));
    }
  }

 private:
  const std::string root_;
  absl::Status status_;
};

std::vector<absl::string_view> Lines(absl::string_view text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

std::vector<absl::string_view> Words(absl::string_view line) {
  return absl::StrSplit(line, absl::ByAnyChar(" \t\n"), absl::SkipEmpty());
}

// The word at `index` as a number; nothing for "max" and the like.
std::optional<int64_t> NumberAt(const std::vector<absl::string_view>& words, size_t index) {
  int64_t value = 0;
  if (index >= words.size() || !absl::SimpleAtoi(words[index], &value)) return std::nullopt;
  return value;
}

// The leading number of a file.
std::optional<int64_t> ReadNumber(const std::string& path, LimitFiles* files) {
  const std::optional<std::string> text = files->Read(path);
  return text.has_value() ? NumberAt(Words(*text), 0) : std::nullopt;
}

// The value of "key: 123 kB" or "key 123" in a file of such lines.
std::optional<int64_t> ReadField(const std::string& path, absl::string_view key,
                                 LimitFiles* files) {
  const std::string text = files->Read(path).value_or("");
  for (const absl::string_view line : Lines(text)) {
    const std::vector<absl::string_view> words = Words(line);
    if (words.size() >= 2 && words[0] == key) return NumberAt(words, 1);
  }
  return std::nullopt;
}

// The process's group below a hierarchy's mount; version 2 has the line "0::/path", version 1
// "4:memory:/path".
std::string GroupPath(const std::string& controller, LimitFiles* files) {
  const std::string text = files->Read("/proc/self/cgroup").value_or("");
  for (const absl::string_view line : Lines(text)) {
    const size_t first = line.find(':');
    if (first == absl::string_view::npos) continue;
    const size_t second = line.find(':', first + 1);
    if (second == absl::string_view::npos) continue;
    const std::string names = absl::StrCat(",", line.substr(first + 1, second - first - 1), ",");
    const bool found = controller.empty()
                           ? names == ",,"
                           : absl::StrContains(names, absl::StrCat(",", controller, ","));
    if (found) return std::string(line.substr(second + 1));
  }
  return "";
}

// The group's folder and those above it: a limit of any of them holds. Inside a container the path
// may not exist, but the mount itself is then the container's group.
std::vector<std::string> GroupFolders(const std::string& mount, std::string group) {
  std::vector<std::string> folders;
  while (group.size() > 1) {
    folders.push_back(mount + group);
    group.resize(group.find_last_of('/'));
  }
  folders.push_back(mount);
  return folders;
}

std::optional<int64_t> FreeInGroup(const std::string& folder, const char* limit_file,
                                   const char* usage_file, const char* cache_key,
                                   LimitFiles* files) {
  const std::optional<int64_t> limit = ReadNumber(folder + limit_file, files);
  const std::optional<int64_t> usage = ReadNumber(folder + usage_file, files);
  if (!limit.has_value() || !usage.has_value()) return std::nullopt;
  // File pages that nobody used lately are given back when memory is asked for.
  const int64_t cache = ReadField(folder + "/memory.stat", cache_key, files).value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - cache));
}

}  // namespace

absl::StatusOr<int64_t> AvailableMemoryBytes(const std::string& root) {
  LimitFiles files(root);
  int64_t available = std::numeric_limits<int64_t>::max();
  const auto consider = [&available](std::optional<int64_t> bytes) {
    if (bytes.has_value()) available = std::min(available, *bytes);
  };
  const std::optional<int64_t> free_kib = ReadField("/proc/meminfo", "MemAvailable:", &files);
  if (free_kib.has_value()) consider(*free_kib * 1024);
  for (const std::string& folder : GroupFolders("/sys/fs/cgroup", GroupPath("", &files))) {
    consider(FreeInGroup(folder, "/memory.max", "/memory.current", "inactive_file", &files));
  }
  for (const std::string& folder :
       GroupFolders("/sys/fs/cgroup/memory", GroupPath("memory", &files))) {
    consider(FreeInGroup(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                         "total_inactive_file", &files));
  }
  LLM_RETURN_IF_ERROR(files.status());
  return available;
}

absl::StatusOr<int> UsableCores(const std::string& root) {
  LimitFiles files(root);
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  // A quota below 0, or "max", is none.
  const auto consider = [&cores](int64_t quota, int64_t period) {
    if (quota > 0 && period > 0) cores = std::min(cores, std::max<int64_t>(1, quota / period));
  };
  for (const std::string& folder : GroupFolders("/sys/fs/cgroup", GroupPath("", &files))) {
    const std::string text = files.Read(folder + "/cpu.max").value_or("");
    const std::vector<absl::string_view> words = Words(text);
    consider(NumberAt(words, 0).value_or(0), NumberAt(words, 1).value_or(0));
  }
  for (const std::string& folder : GroupFolders("/sys/fs/cgroup/cpu", GroupPath("cpu", &files))) {
    consider(ReadNumber(folder + "/cpu.cfs_quota_us", &files).value_or(0),
             ReadNumber(folder + "/cpu.cfs_period_us", &files).value_or(0));
  }
  LLM_RETURN_IF_ERROR(files.status());
  return static_cast<int>(cores);
}

}  // namespace llm
