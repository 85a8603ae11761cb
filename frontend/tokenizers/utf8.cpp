#include "frontend/tokenizers/utf8.h"

#include <algorithm>

namespace heddle {

static unsigned byteAt(std::string_view bytes, size_t i) {
  return static_cast<unsigned char>(bytes[i]);
}

Utf8Verdict judgeUtf8(std::string_view bytes) {
  const unsigned lead = byteAt(bytes, 0);
  if (lead < 0x80)
    return {Utf8Verdict::whole, 1};
  if (lead < 0xc2 || lead > 0xf4)
    return {Utf8Verdict::invalid, 1};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte alone excludes spellings that are too long, surrogates, and values too large.
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size())
      return {Utf8Verdict::partial, i};
    if (byteAt(bytes, i) < (i == 1 ? lowest : 0x80) || byteAt(bytes, i) > (i == 1 ? highest : 0xbf))
      return {Utf8Verdict::invalid, i};
  }
  return {Utf8Verdict::whole, length};
}

std::string replaceInvalidUtf8(std::string_view text) {
  std::string valid;
  valid.reserve(text.size());
  while (!text.empty()) {
    const Utf8Verdict verdict = judgeUtf8(text);
    const size_t length = verdict.kind == Utf8Verdict::whole ? verdict.length : 1;
    valid += verdict.kind == Utf8Verdict::whole ? text.substr(0, length) : replacementCharacter;
    text.remove_prefix(length);
  }
  return valid;
}

size_t characterLength(std::string_view text) {
  const unsigned lead = byteAt(text, 0);
  const size_t length = lead < 0xc0 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  return std::min(length, text.size());
}

char32_t characterAt(std::string_view text) {
  const size_t length = characterLength(text);
  if (length == 1)
    return byteAt(text, 0);
  char32_t value = byteAt(text, 0) & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i)
    value = value << 6 | (byteAt(text, i) & 0x3fu);
  return value;
}

void appendCharacter(std::string &text, char32_t value) {
  const auto put = [&](char32_t byte) { text += static_cast<char>(byte); };
  if (value < 0x80)
    return put(value);
  if (value < 0x800) {
    put(0xc0 | value >> 6);
  } else if (value < 0x10000) {
    put(0xe0 | value >> 12);
    put(0x80 | (value >> 6 & 0x3f));
  } else {
    put(0xf0 | value >> 18);
    put(0x80 | (value >> 12 & 0x3f));
    put(0x80 | (value >> 6 & 0x3f));
  }
  put(0x80 | (value & 0x3f));
}

} // namespace heddle
