// What `inspect` costs for large files.
#include "frontend/inspect.h"

#include "tests/support/gguf_file.h"
#include "tests/unit/frontend/files.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sys/resource.h>

namespace heddle {
namespace {

constexpr int64_t elements = int64_t{1} << 29, dataBytes = elements * 4; // 2 GB of f32

/// Inspects a file of 2 GB, all of whose data are a hole: reading them would take memory and time.
void expectHeadersOnly(const std::string &path, const std::string &tensor) {
  const auto used = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage;
  };
  const rusage before = used();
  const auto inspected = inspectFiles(path);
  const rusage after = used();
  ASSERT_TRUE(inspected) << inspected.error().message;
  ASSERT_EQ(inspected->tensors.size(), 1u);
  EXPECT_EQ(inspected->tensors[0].name, tensor);
  EXPECT_EQ(inspected->tensors[0].bytes, uint64_t(dataBytes));
  // Every page that is touched is a fault: 2 GB are half a million of 4 KB, a thousand of 2 MB.
  EXPECT_LT(after.ru_minflt - before.ru_minflt + after.ru_majflt - before.ru_majflt, 500);
}

/// Writes `header`, and a hole up to the end of the data.
std::string writeLarge(const test::TemporaryFolder &folder, const char *name,
                       const std::string &header) {
  const std::string path = folder.write(name, header);
  std::filesystem::resize_file(path, header.size() + uint64_t(dataBytes));
  return path;
}

TEST(Inspect, ReadsTheHeadersOfLargeFilesAlone) {
  const test::TemporaryFolder folder;
  test::GgufFile file;
  file.text("general.architecture", "llama");
  file.tensorAt("table", {elements / 64, 64}, ggml::f32, 0);
  expectHeadersOnly(writeLarge(folder, "large.gguf", file.bytes()), "table");
  const std::string header = R"({"table":{"dtype":"F32","shape":[)" + std::to_string(elements) +
                             R"(],"data_offsets":[0,)" + std::to_string(dataBytes) + "]}}";
  std::string bytes;
  test::put(bytes, uint64_t(header.size()));
  expectHeadersOnly(writeLarge(folder, "large.safetensors", bytes + header), "table");
}

} // namespace
} // namespace heddle
