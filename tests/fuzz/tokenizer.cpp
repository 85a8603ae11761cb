// Any bytes as a tokenizer, the rest of them as a text: refused, or the tokens of the text spell
// it.
#include "frontend/tokenizers/llama2c_tokenizer.h"
#include "frontend/tokenizers/utf8_stream.h"

#include <cstdint>
#include <cstdlib>

namespace {

void check(bool holds) {
  if (!holds)
    std::abort();
}

/// Whether the vocabulary can spell any text: it has a piece for each byte, and encoding's own
/// space does not merge with a byte that decoding then keeps.
bool spellsEveryByte(const heddle::Tokenizer &tokenizer) {
  for (int32_t byte = 0; byte < 256; ++byte) {
    const auto piece = tokenizer.piece(0, byte + 3);
    if (!piece || piece->size() != 1 || static_cast<uint8_t>(piece->front()) != byte)
      return false;
  }
  return true;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size < 2)
    return 0;
  // The first two bytes divide the input.
  const size_t split = std::min<size_t>(size, 2 + (data[0] | data[1] << 8));
  const auto file = std::as_bytes(std::span(data + 2, split - 2));
  const std::string_view text(reinterpret_cast<const char *>(data + split), size - split);

  heddle::Utf8Stream whole, bytewise;
  std::string valid = whole.push(text), same;
  valid += whole.flush();
  for (const char c : text)
    same += bytewise.push({&c, 1});
  same += bytewise.flush();
  check(valid == same);

  (void)heddle::looksLikeLlama2cTokenizer(file);
  const auto count = heddle::countLlama2cTokens(file, "fuzz");
  if (!count)
    return 0;
  const auto parsed = heddle::readLlama2cTokenizer(file, "fuzz", *count);
  if (!parsed)
    return 0;
  const heddle::Tokenizer &tokenizer = **parsed;
  const auto tokens = tokenizer.encode(text, true);
  check(static_cast<bool>(tokens));
  const auto decoded = tokenizer.decode(*tokens);
  check(static_cast<bool>(decoded));
  if (!text.empty() && spellsEveryByte(tokenizer))
    check(*decoded == text || *decoded == " " + std::string(text));
  return 0;
}
