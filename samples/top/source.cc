// Both are read to their end.
#include "top/source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace top {
namespace {

int Connect(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval patience = {5, 0};  // a host in trouble may not answer
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

}  // namespace

double NowSeconds() {
  const auto since = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string ReadSource(const std::string& path, Reading* reading) {
  constexpr size_t kMaxBytes = 16 << 20;
  struct stat status = {};
  std::string* text = &reading->text;
  text->clear();
  if (stat(path.c_str(), &status) != 0) return path + ": " + std::strerror(errno);
  const bool is_socket = S_ISSOCK(status.st_mode);
  const int fd = is_socket ? Connect(path) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return path + ": " + std::strerror(errno);
  // The file that was opened may be newer than the one that was asked about.
  reading->time_s = NowSeconds();
  if (!is_socket && fstat(fd, &status) == 0)
    reading->time_s = static_cast<double>(status.st_mtim.tv_sec) +
                      static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
  char part[1 << 14];
  ssize_t size = 0;
  while (text->size() <= kMaxBytes && (size = read(fd, part, sizeof part)) > 0)
    text->append(part, static_cast<size_t>(size));
  const int error = errno;
  close(fd);
  if (size < 0) return path + ": " + std::strerror(error);
  return text->size() > kMaxBytes ? path + ": too long for counters" : "";
}

}  // namespace top
