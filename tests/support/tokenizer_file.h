// Tokenizer files of llama2.c that tests write themselves.
#pragma once

#include "tests/support/bytes.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::test {

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
