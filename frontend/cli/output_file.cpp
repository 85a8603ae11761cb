#include "frontend/cli/output_file.h"

#include "frontend/cli/command.h"
#include "frontend/cli/terminal.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace heddle::command {

Error OutputFile::failed() const {
  return dataError(path + ": cannot be written: " + std::strerror(errno));
}

OutputFile::~OutputFile() {
  if (file >= 0)
    close(file);
  if (!temporary.empty()) {
    unlink(temporary.c_str());
    keepOnInterrupt(temporary.c_str());
  }
}

/// Where the links of `path` lead, which do not go round in circles; where it is none, `path`.
static std::string targetOf(const std::string &path) {
  std::filesystem::path target = path;
  std::error_code error;
  while (std::filesystem::is_symlink(target, error)) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error)
      return path;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target;
}

Status OutputFile::open() {
  struct stat existing = {};
  if (stat(path.c_str(), &existing) != 0 && errno == ELOOP)
    return failed();
  const bool isStream = path.starts_with("/dev/") || path.starts_with("/proc/");
  if (stat(path.c_str(), &existing) == 0 && (isStream || !S_ISREG(existing.st_mode))) {
    file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    return file < 0 ? Status(failed()) : Status();
  }
  target = targetOf(path);
  // Before the work rather than after it: the longest name it may stand under until it is whole.
  const std::string longest = target + ".1234567-99";
  if (lstat(longest.c_str(), &existing) != 0 && errno == ENAMETOOLONG)
    return failed();
  if (openNameless())
    return {};
  temporary = target + ".XXXXXX";
  file = mkstemp(temporary.data());
  if (file < 0) {
    temporary.clear();
    return failed();
  }
  removeOnInterrupt(temporary.c_str());
  const mode_t mask = umask(0);
  umask(mask);
  fchmod(file, 0666 & ~mask);
  return {};
}

/// The file under which a process finds what it has open.
static std::string ownLink(int file) { return "/proc/self/fd/" + std::to_string(file); }

/// A file without a name is gone with the process, however that ends. False where the file system
/// has none, or no way to name it later.
bool OutputFile::openNameless() {
  const std::string folder = std::filesystem::path(target).parent_path();
  file = ::open(folder.empty() ? "." : folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
  if (file >= 0 && access(ownLink(file).c_str(), F_OK) != 0) {
    close(file);
    file = -1;
  }
  isNameless = file >= 0;
  return isNameless;
}

/// Gives the whole file a name of its own beside the target, since a link replaces nothing.
Status OutputFile::nameWhole() {
  // The process and a count tell apart whoever does so at once.
  for (int count = 0; count < 100; ++count) {
    temporary = target + "." + std::to_string(getpid()) + "-" + std::to_string(count);
    removeOnInterrupt(temporary.c_str());
    if (linkat(AT_FDCWD, ownLink(file).c_str(), AT_FDCWD, temporary.c_str(), AT_SYMLINK_FOLLOW) ==
        0)
      return {};
    keepOnInterrupt(temporary.c_str());
    if (errno != EEXIST)
      break;
  }
  temporary.clear();
  return failed();
}

Status OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR)
      return failed();
    bytes = bytes.subspan(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return {};
}

Status OutputFile::commit() {
  if (isNameless)
    if (Status named = nameWhole(); !named)
      return named;
  // Some file systems say only now that there was no room.
  const int closed = close(file);
  file = -1;
  if (closed != 0)
    return failed();
  if (temporary.empty())
    return {};
  if (std::rename(temporary.c_str(), target.c_str()) != 0)
    return failed();
  keepOnInterrupt(temporary.c_str());
  temporary.clear();
  return {};
}

Status writeFile(const std::string &path, std::string_view text) {
  if (path == "-")
    return print(text);
  OutputFile file(path);
  if (Status opened = file.open(); !opened)
    return opened;
  if (Status written = file.write(std::as_bytes(std::span(text))); !written)
    return written;
  return file.commit();
}

} // namespace heddle::command
