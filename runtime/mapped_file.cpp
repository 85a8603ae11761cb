#include "runtime/mapped_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace heddle::runtime {

namespace {

/// A file descriptor, closed at the end of its scope.
class Descriptor {
public:
  explicit Descriptor(int number) : number(number) {}
  Descriptor(const Descriptor &) = delete;
  Descriptor &operator=(const Descriptor &) = delete;
  ~Descriptor() {
    if (number >= 0)
      close(number);
  }

  const int number;
};

Error systemError(const std::string &path, const char *doing) {
  const int code = errno;
  if (code == ENOENT || code == ENOTDIR)
    return dataError(fmt::format("{}: no such file", path));
  if (code == EACCES || code == EPERM)
    return dataError(fmt::format("{}: this user may not read it", path));
  return dataError(
      fmt::format("{}: cannot {} it: {}", path, doing, std::generic_category().message(code)));
}

} // namespace

Result<MappedFile> MappedFile::open(const std::string &path) {
  if (path.find('\0') != std::string::npos)
    return dataError("a file's name holds a zero byte");
  // Without O_NONBLOCK, opening a pipe that nobody writes to would wait for ever.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number < 0)
    return systemError(path, "open");
  struct stat status{};
  if (fstat(file.number, &status) != 0)
    return systemError(path, "examine");
  if (S_ISDIR(status.st_mode))
    return dataError(fmt::format("{}: is a directory, expected a file", path));
  if (!S_ISREG(status.st_mode))
    return dataError(fmt::format("{}: is a device, pipe or socket, expected a file", path));
  const auto length = static_cast<size_t>(status.st_size);
  if (length == 0)
    return MappedFile(nullptr, 0);
  void *start = mmap(nullptr, length, PROT_READ, MAP_SHARED, file.number, 0);
  if (start == MAP_FAILED)
    return systemError(path, "map");
  return MappedFile(start, length);
}

MappedFile::~MappedFile() {
  if (start)
    munmap(start, length);
}

} // namespace heddle::runtime
