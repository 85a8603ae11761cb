// Any bytes as a tokenizer of llama2.c, the rest of them as a text: refused, or the tokens of the
// text spell it.
#include "frontend/tokenizers/llama2c_tokenizer.h"
#include "frontend/tokenizers/utf8_stream.h"
#include "tests/fuzz/support/target.h"
#include "tests/support/tokenizer_file.h"

#include <algorithm>

namespace heddle::fuzz {

namespace {

/// Whether the vocabulary can spell any text: it has a piece for each byte, and encoding's own
/// space does not merge with a byte that decoding then keeps.
bool spellsEveryByte(const Tokenizer &tokenizer) {
  for (int32_t byte = 0; byte < 256; ++byte) {
    const auto piece = tokenizer.piece(0, byte + 3);
    if (!piece || piece->size() != 1 || static_cast<uint8_t>(piece->front()) != byte)
      return false;
  }
  return true;
}

void streamBytewise(std::string_view text) {
  Utf8Stream whole, bytewise;
  std::string valid = whole.push(text), same;
  valid += whole.flush();
  for (const char c : text)
    same += bytewise.push({&c, 1});
  same += bytewise.flush();
  require(valid == same, "text comes out alike in one piece and byte by byte");
}

} // namespace

void read(std::string_view input) {
  if (input.size() < 2)
    return;
  // The first two bytes say how long the file is.
  const size_t asked = size_t(uint8_t(input[0])) | size_t(uint8_t(input[1])) << 8;
  const size_t split = std::min(input.size(), 2 + asked);
  const auto file = bytesOf(input.substr(2, split - 2));
  const std::string_view text = input.substr(split);
  streamBytewise(text);

  (void)looksLikeLlama2cTokenizer(file);
  const auto count = countLlama2cTokens(file, "fuzz");
  if (!count)
    return requireClear(count.error());
  const auto parsed = readLlama2cTokenizer(file, "fuzz", *count);
  if (!parsed)
    return requireClear(parsed.error());
  const Tokenizer &tokenizer = **parsed;
  const auto tokens = tokenizer.encode(text, true);
  require(static_cast<bool>(tokens), "any text has tokens");
  const auto decoded = tokenizer.decode(*tokens);
  require(static_cast<bool>(decoded), "tokens have a text");
  if (!text.empty() && spellsEveryByte(tokenizer))
    require(*decoded == text || *decoded == " " + std::string(text), "tokens spell their text");
}

std::vector<std::string> seeds() {
  auto words = test::marksAndBytes();
  for (const char *word : {" ", "a", "b", " a", "ab", " ab", "\xe4\xbd\xa0"})
    words.push_back({word, float(words.size())});
  const std::string file = test::tokenizerFile(words, 8);
  std::string bytes;
  test::put(bytes, uint16_t(file.size()));
  return {bytes + file + "ab ba \xe4\xbd\xa0\xff", bytes + file, std::string("\0\0abc", 5)};
}

} // namespace heddle::fuzz
