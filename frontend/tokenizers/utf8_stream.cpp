#include "frontend/tokenizers/utf8_stream.h"

#include "frontend/tokenizers/utf8.h"

#include <utility>

namespace heddle {

std::string Utf8Stream::push(std::string_view bytes) {
  const std::string input = std::exchange(kept, {}).append(bytes);
  std::string text;
  for (std::string_view rest = input; !rest.empty();) {
    const Utf8Verdict verdict = judgeUtf8(rest);
    if (verdict.kind == Utf8Verdict::partial) {
      kept = rest;
      break;
    }
    text +=
        verdict.kind == Utf8Verdict::whole ? rest.substr(0, verdict.length) : replacementCharacter;
    rest.remove_prefix(verdict.length);
  }
  return text;
}

std::string Utf8Stream::flush() {
  return std::exchange(kept, {}).empty() ? std::string() : std::string(replacementCharacter);
}

} // namespace heddle
