#include "tests/support/data.h"

#include <cstdlib>

namespace heddle::test {

std::filesystem::path sourceFolder() { return HEDDLE_SOURCE_DIR; }

std::filesystem::path dataFolder() {
  if (const char *folder = std::getenv("HEDDLE_TEST_DATA"))
    return folder;
  return sourceFolder().parent_path() / "shared" / "data";
}

} // namespace heddle::test
