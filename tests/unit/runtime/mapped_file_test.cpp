#include "runtime/mapped_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace heddle::runtime {
namespace {

/// A file of the test, removed at the end.
class TemporaryFile {
public:
  explicit TemporaryFile(const std::string &content) {
    const int file = mkstemp(path.data());
    EXPECT_GE(file, 0);
    EXPECT_EQ(write(file, content.data(), content.size()), static_cast<ssize_t>(content.size()));
    close(file);
  }
  ~TemporaryFile() { std::remove(path.c_str()); }

  std::string path = testing::TempDir() + "heddle-mapped-XXXXXX";
};

std::string textOf(const MappedFile &file) {
  const auto bytes = file.bytes();
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

TEST(MappedFile, MapsTheWholeFile) {
  const std::string content(10000, 'x');
  const TemporaryFile file(content);
  const auto mapped = MappedFile::open(file.path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(textOf(*mapped), content);
}

TEST(MappedFile, OutlivesTheName) {
  auto file = std::make_unique<TemporaryFile>("kept");
  const auto mapped = MappedFile::open(file->path);
  ASSERT_TRUE(mapped);
  file.reset();
  EXPECT_EQ(textOf(*mapped), "kept");
}

TEST(MappedFile, MovesWithoutMovingTheBytes) {
  const TemporaryFile one("one"), two("two");
  auto first = MappedFile::open(one.path);
  auto second = MappedFile::open(two.path);
  ASSERT_TRUE(first && second);
  const std::byte *address = second->bytes().data();
  *first = *std::move(second);
  EXPECT_EQ(textOf(*first), "two");
  EXPECT_EQ(first->bytes().data(), address);
  const MappedFile moved = *std::move(first);
  EXPECT_EQ(textOf(moved), "two");
  EXPECT_TRUE(first->bytes().empty());
}

TEST(MappedFile, AnEmptyFileHasNoBytes) {
  const TemporaryFile file("");
  const auto mapped = MappedFile::open(file.path);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_TRUE(mapped->bytes().empty());
}

TEST(MappedFile, SaysWhatIsWrong) {
  const auto errorAt = [](const std::string &path) {
    const auto mapped = MappedFile::open(path);
    return mapped ? "opened" : mapped.error().message;
  };
  EXPECT_EQ(errorAt("/nowhere/at-all"), "/nowhere/at-all: no such file");
  EXPECT_EQ(errorAt("/dev/null/x"), "/dev/null/x: no such file");
  EXPECT_EQ(errorAt("/"), "/: is a directory, expected a file");
  EXPECT_EQ(errorAt("/dev/zero"), "/dev/zero: is a device, pipe or socket, expected a file");
  EXPECT_NE(errorAt(std::string(5000, 'a')).find("cannot open it"), std::string::npos);
}

} // namespace
} // namespace heddle::runtime
