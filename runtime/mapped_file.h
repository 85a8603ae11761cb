// A file mapped read-only into memory: how weights reach the kernels without being copied.
#pragma once

#include "runtime/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <utility>

namespace heddle::runtime {

/// A regular file mapped read-only for as long as this object lives. Moving keeps the addresses.
/// The mapping shares pages with every process that maps the file. Whoever shortens the file
/// meanwhile takes the pages away; the system then ends this process.
class MappedFile {
public:
  /// Maps the whole of `path`. An empty file is mapped to no bytes. Errors (data): missing, not
  /// readable, a directory or another kind of file that has no length.
  static Result<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept
      : start(std::exchange(other.start, nullptr)), length(std::exchange(other.length, 0)) {}
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(start, other.start);
    std::swap(length, other.length);
    return *this;
  }
  ~MappedFile();

  /// Every byte of the file; the first is aligned to a page.
  std::span<const std::byte> bytes() const {
    return {static_cast<const std::byte *>(start), length};
  }

private:
  MappedFile(void *start, size_t length) : start(start), length(length) {}

  void *start = nullptr;
  size_t length = 0;
};

} // namespace heddle::runtime
