// Where failed passes leave what reproduces the failure.
#pragma once

#include "tests/unit/frontend/files.h"

#include <cstdlib>
#include <optional>

namespace heddle::test {

/// A folder of its own for the reproducers of failed passes, while it lives.
class ReproducerFolder {
public:
  ReproducerFolder() {
    if (const char *value = std::getenv("TMPDIR"))
      before = value;
    setenv("TMPDIR", path().c_str(), 1);
  }
  ~ReproducerFolder() {
    if (before)
      setenv("TMPDIR", before->c_str(), 1);
    else
      unsetenv("TMPDIR");
  }
  std::string path() const { return folder.path(""); }
  int64_t files() const { return std::distance(std::filesystem::directory_iterator(path()), {}); }

private:
  TemporaryFolder folder;
  std::optional<std::string> before;
};

} // namespace heddle::test
