// Both are read to their end.
#include "top/source.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
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

std::string ReadSource(const std::string& path, std::string* text) {
  constexpr size_t kMaxBytes = 16 << 20;
  struct stat status = {};
  text->clear();
  if (stat(path.c_str(), &status) != 0) return path + ": " + std::strerror(errno);
  const int fd =
      S_ISSOCK(status.st_mode) ? Connect(path) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return path + ": " + std::strerror(errno);
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
