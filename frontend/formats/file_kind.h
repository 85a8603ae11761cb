// What kind of file some bytes are, told by content: extensions lie.
#pragma once

#include <cstddef>
#include <span>

namespace heddle {

enum class FileKind {
  empty,
  gguf,
  llama2cVersioned, ///< llama2.c checkpoint with a magic number (versions 1 and 2)
  llama2cTokenizer, ///< llama2.c's tokenizer format
  safetensors,
  sentencePiece, ///< SentencePiece's `.model`
  zip,           ///< a PyTorch checkpoint, most likely
  pickle,        ///< an old PyTorch checkpoint
  lfsPointer,    ///< what a clone without Git LFS leaves in a large file's place
  html,          ///< what a failed download leaves
  json,
  text,
  unknown, ///< none of these; a llama2.c checkpoint of version 0 has no magic number
};

/// Tells the kind of `bytes`, a whole file. Looks at the first bytes only, except for a
/// tokenizer of llama2.c, which has no magic number either: it is walked through.
FileKind recognise(std::span<const std::byte> bytes);

/// A noun for messages: "a GGUF file".
const char *describe(FileKind kind);

} // namespace heddle
