// Small files that a test writes itself.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::test {

inline std::string readFile(const std::filesystem::path &path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

/// A folder of its own for one test, removed with what is in it.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "heddle-test-XXXXXX").string();
    EXPECT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
  }
  TemporaryFolder(const TemporaryFolder &) = delete;
  TemporaryFolder &operator=(const TemporaryFolder &) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }

  std::string path(std::string_view name) const { return (folder / name).string(); }

  /// Writes a file and returns its path.
  std::string write(std::string_view name, std::string_view content) const {
    std::ofstream stream(folder / name, std::ios::binary | std::ios::trunc);
    stream.write(content.data(), static_cast<std::streamsize>(content.size()));
    EXPECT_TRUE(stream.flush());
    return path(name);
  }

private:
  std::filesystem::path folder;
};

/// Appends the bytes of a number, as files of this processor's byte order hold it.
template <class T>
void put(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

/// A word of a tokenizer a test writes.
struct TestWord {
  std::string text;
  float score = 0;
};

/// A tokenizer file in llama2.c's format.
inline std::string tokenizerFile(const std::vector<TestWord> &words, int32_t maxLength) {
  std::string bytes;
  put(bytes, maxLength);
  for (const TestWord &word : words) {
    put(bytes, word.score);
    put(bytes, static_cast<int32_t>(word.text.size()));
    bytes += word.text;
  }
  return bytes;
}

/// The three marks and the 256 bytes that begin a vocabulary.
inline std::vector<TestWord> marksAndBytes() {
  std::vector<TestWord> words = {{"<unk>"}, {"\n<s>\n"}, {"\n</s>\n"}};
  for (int i = 0; i < 256; ++i) {
    constexpr const char *digits = "0123456789ABCDEF";
    words.push_back({std::string("<0x") + digits[i / 16] + digits[i % 16] + ">"});
  }
  return words;
}

} // namespace heddle::test
