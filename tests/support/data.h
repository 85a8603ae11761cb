// The data that some tests need lies outside the repository: trained weights and the like.
#pragma once

#include <filesystem>

namespace heddle::test {

/// The folder of the test data: HEDDLE_TEST_DATA, or ../shared/data beside the repository.
/// It need not exist.
std::filesystem::path dataFolder();

/// The repository.
std::filesystem::path sourceFolder();

} // namespace heddle::test

/// Names a file of the data folder, or skips the test (or the SetUp) it stands in without it:
/// HEDDLE_TEST_DATA_FILE(checkpoint, "llama2c/stories260K.bin");
#define HEDDLE_TEST_DATA_FILE(variable, name)                                                      \
  const std::filesystem::path variable = heddle::test::dataFolder() / (name);                      \
  if (!std::filesystem::exists(variable))                                                          \
  GTEST_SKIP() << "needs " << variable << "; see HEDDLE_TEST_DATA in tests/README.md"
