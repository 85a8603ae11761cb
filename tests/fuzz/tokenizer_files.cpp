// Any bytes as a file with a tokenizer, the rest of them as a text: refused in one line, or the
// text gets ids of the vocabulary that can be decoded.
#include "frontend/formats/gguf.h"
#include "frontend/tokenizers/gguf_tokenizer.h"
#include "frontend/tokenizers/hf_tokenizer.h"
#include "frontend/tokenizers/sentencepiece.h"

#include <cstdint>
#include <cstdlib>

namespace {

using heddle::Result;
using heddle::Tokenizer;
using Opened = Result<std::unique_ptr<Tokenizer>>;

void check(bool holds) {
  if (!holds)
    std::abort();
}

void use(const Opened &opened, std::string_view text) {
  if (!opened) {
    const std::string &message = opened.error().message;
    check(!message.empty() && message.find('\n') == std::string::npos);
    check(opened.error().kind != heddle::ErrorKind::internal);
    return;
  }
  const Tokenizer &tokenizer = **opened;
  for (const auto spelling : {heddle::MarkSpelling::mark, heddle::MarkSpelling::text}) {
    const auto ids = tokenizer.encode(text, false, spelling);
    if (!ids)
      continue; // an expression that takes too long
    for (const int32_t id : *ids)
      check(id >= 0 && id < tokenizer.vocabularySize());
    check(static_cast<bool>(tokenizer.decode(*ids)));
  }
}

Opened open(std::string_view file) {
  const auto bytes = std::as_bytes(std::span(file.data(), file.size()));
  if (file.starts_with("GGUF")) {
    const auto header = heddle::parseGguf(bytes, "fuzz");
    return header ? heddle::readGgufTokenizer(*header, heddle::anyVocabulary)
                  : Opened(header.error());
  }
  if (file.starts_with("{"))
    return heddle::readHfTokenizer(file, "fuzz", {}, heddle::anyVocabulary);
  return heddle::readSentencePiece(bytes, "fuzz", heddle::anyVocabulary);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string_view all(reinterpret_cast<const char *>(data), size);
  // The text comes after the last "@@"; without one the file is asked to read part of itself.
  const size_t sign = all.rfind("@@");
  const std::string_view file = all.substr(0, sign);
  use(open(file), sign == std::string_view::npos ? file.substr(0, 200) : all.substr(sign + 2));
  return 0;
}
