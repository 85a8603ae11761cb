#include "frontend/tokenizers/tokenizer.h"

#include "frontend/formats/file_kind.h"
#include "frontend/tokenizers/llama2c_tokenizer.h"

#include <fmt/format.h>

namespace heddle {

Result<std::string> Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  int32_t previous = bos();
  for (const int32_t token : tokens) {
    const auto added = piece(previous, token);
    if (!added)
      return added.error();
    text += *added;
    previous = token;
  }
  return text;
}

Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string &path, int64_t vocabularySize) {
  auto file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();
  const FileKind kind = recognise(file->bytes());
  // A damaged tokenizer is of unknown kind; the reader then says where the damage is.
  if (kind != FileKind::llama2cTokenizer && kind != FileKind::unknown)
    return dataError(fmt::format(
        "{}: is {}{}; heddle reads tokenizers of llama2.c (tokenizer.bin)", path, describe(kind),
        kind == FileKind::sentencePiece ? ", which is not supported yet" : ""));
  auto tokenizer = Llama2cTokenizer::parse(*std::move(file), path, vocabularySize);
  if (!tokenizer)
    return tokenizer.error();
  return std::unique_ptr<Tokenizer>(*std::move(tokenizer));
}

} // namespace heddle
