#include "frontend/tokenizers/utf8_stream.h"

#include <cstddef>
#include <utility>

namespace heddle {

namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";

/// What can be said about the start of some bytes.
struct Verdict {
  enum { whole, partial, invalid } kind;
  size_t length; ///< bytes of the character, of its beginning, or to be replaced
};

/// Judges the character at the start of `bytes`, which are not empty (Unicode, table 3-7).
Verdict judge(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80)
    return {Verdict::whole, 1};
  if (lead < 0xc2 || lead > 0xf4)
    return {Verdict::invalid, 1};
  const size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  // The second byte alone excludes spellings that are too long, surrogates, and values too large.
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size())
      return {Verdict::partial, i};
    if (byte(i) < (i == 1 ? lowest : 0x80) || byte(i) > (i == 1 ? highest : 0xbf))
      return {Verdict::invalid, i};
  }
  return {Verdict::whole, length};
}

} // namespace

std::string Utf8Stream::push(std::string_view bytes) {
  const std::string input = std::exchange(kept, {}).append(bytes);
  std::string text;
  for (std::string_view rest = input; !rest.empty();) {
    const Verdict verdict = judge(rest);
    if (verdict.kind == Verdict::partial) {
      kept = rest;
      break;
    }
    text += verdict.kind == Verdict::whole ? rest.substr(0, verdict.length) : replacement;
    rest.remove_prefix(verdict.length);
  }
  return text;
}

std::string Utf8Stream::flush() {
  return std::exchange(kept, {}).empty() ? std::string() : std::string(replacement);
}

} // namespace heddle
