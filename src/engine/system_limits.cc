// Reads /proc and the cgroup file systems, versions 1 and 2. Whatever cannot be read limits
// nothing.
#include "src/engine/system_limits.h"

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <vector>

namespace llm {
namespace {

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The leading number of a file; nothing for "max" and the like.
std::optional<int64_t> ReadNumber(const std::string& path) {
  const std::optional<std::string> text = ReadFile(path);
  if (!text.has_value()) return std::nullopt;
  std::istringstream stream(*text);
  int64_t value = 0;
  if (!(stream >> value)) return std::nullopt;
  return value;
}

// The value of "key: 123 kB" or "key 123" in a file of such lines.
std::optional<int64_t> ReadField(const std::string& path, const std::string& key) {
  std::istringstream stream(ReadFile(path).value_or(""));
  std::string line;
  while (std::getline(stream, line)) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    if (words >> name >> value && name == key) return value;
  }
  return std::nullopt;
}

// The process's group below a hierarchy's mount; version 2 has the line "0::/path", version 1
// "4:memory:/path".
std::string GroupPath(const std::string& root, const std::string& controller) {
  std::istringstream stream(ReadFile(root + "/proc/self/cgroup").value_or(""));
  std::string line;
  while (std::getline(stream, line)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool found = controller.empty() ? names == ",,"
                                          : names.find("," + controller + ",") != std::string::npos;
    if (found) return line.substr(second + 1);
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
                                   const char* usage_file, const char* cache_key) {
  const std::optional<int64_t> limit = ReadNumber(folder + limit_file);
  const std::optional<int64_t> usage = ReadNumber(folder + usage_file);
  if (!limit.has_value() || !usage.has_value()) return std::nullopt;
  // File pages that nobody used lately are given back when memory is asked for.
  const int64_t cache = ReadField(folder + "/memory.stat", cache_key).value_or(0);
  return std::max<int64_t>(0, *limit - std::max<int64_t>(0, *usage - cache));
}

}  // namespace

int64_t AvailableMemoryBytes(const std::string& root) {
  int64_t available = std::numeric_limits<int64_t>::max();
  const auto consider = [&available](std::optional<int64_t> bytes) {
    if (bytes.has_value()) available = std::min(available, *bytes);
  };
  const std::optional<int64_t> free_kib = ReadField(root + "/proc/meminfo", "MemAvailable:");
  if (free_kib.has_value()) consider(*free_kib * 1024);
  for (const std::string& folder : GroupFolders(root + "/sys/fs/cgroup", GroupPath(root, ""))) {
    consider(FreeInGroup(folder, "/memory.max", "/memory.current", "inactive_file"));
  }
  for (const std::string& folder :
       GroupFolders(root + "/sys/fs/cgroup/memory", GroupPath(root, "memory"))) {
    consider(FreeInGroup(folder, "/memory.limit_in_bytes", "/memory.usage_in_bytes",
                         "total_inactive_file"));
  }
  return available;
}

int UsableCores(const std::string& root) {
  cpu_set_t set;
  CPU_ZERO(&set);
  int64_t cores = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  // A quota below 0, or "max", is none.
  const auto consider = [&cores](int64_t quota, int64_t period) {
    if (quota > 0 && period > 0) cores = std::min(cores, std::max<int64_t>(1, quota / period));
  };
  for (const std::string& folder : GroupFolders(root + "/sys/fs/cgroup", GroupPath(root, ""))) {
    std::istringstream stream(ReadFile(folder + "/cpu.max").value_or(""));
    int64_t quota = 0;
    int64_t period = 0;
    if (stream >> quota >> period) consider(quota, period);
  }
  for (const std::string& folder :
       GroupFolders(root + "/sys/fs/cgroup/cpu", GroupPath(root, "cpu"))) {
    consider(ReadNumber(folder + "/cpu.cfs_quota_us").value_or(0),
             ReadNumber(folder + "/cpu.cfs_period_us").value_or(0));
  }
  return static_cast<int>(cores);
}

}  // namespace llm
