#include "frontend/tokenizers/vocabulary.h"

namespace heddle {

static int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

int spelledByte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  const int high = hexDigit(text[3]), low = hexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

Vocabulary::Vocabulary(std::vector<Token> all) : tokens(std::move(all)) {
  byteTokens.fill(none);
  std::array<int32_t, 256> spelled;
  spelled.fill(none);
  bool hasBytes = false;
  ids.reserve(tokens.size());
  for (int32_t id = 0; id < size(); ++id) {
    const Token &token = (*this)[id];
    if (token.kind != TokenKind::control && token.kind != TokenKind::unknown)
      ids.try_emplace(token.text, id);
    const int byte = spelledByte(token.text);
    if (byte < 0)
      continue;
    int32_t &place = (token.kind == TokenKind::byte ? byteTokens : spelled)[size_t(byte)];
    hasBytes |= token.kind == TokenKind::byte;
    if (place == none)
      place = id;
  }
  if (!hasBytes)
    byteTokens = spelled;
}

int32_t Vocabulary::find(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? none : found->second;
}

} // namespace heddle
