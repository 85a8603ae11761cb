#include "frontend/formats/file_kind.h"

#include "frontend/formats/byte_reader.h"
#include "frontend/tokenizers/llama2c_tokenizer.h"

#include <algorithm>

namespace heddle {

namespace {

constexpr uint32_t llama2cMagic = 0x616b3432; // "ak42"
constexpr size_t looksAt = 512;               // bytes that decide whether a file is text

bool isText(std::string_view head) {
  return std::ranges::all_of(head, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte >= ' ' && byte != 0x7f) || byte == '\n' || byte == '\r' || byte == '\t';
  });
}

/// The length of the header in 8 bytes, then the header: JSON.
bool isSafetensors(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  const auto header = reader.read<uint64_t>();
  const auto first = reader.text(1);
  return header && first && *first == "{" && *header < (uint64_t{1} << 40);
}

/// A protocol buffer whose first field holds a piece: its text, then its score, an f32.
bool isSentencePiece(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  constexpr int lengthBytes = 5; // of a length in 32 bits
  constexpr uint8_t messageField = 0x0a, textField = 0x0a, scoreField = 0x15;
  if (reader.read<uint8_t>() != messageField)
    return false;
  const auto message = reader.readVarint(lengthBytes);
  if (!message || reader.read<uint8_t>() != textField)
    return false;
  const auto length = reader.readVarint(lengthBytes);
  return length && *length < *message && reader.text(*length) &&
         reader.read<uint8_t>() == scoreField;
}

FileKind kindOfText(std::string_view head) {
  if (head.starts_with("version https://git-lfs"))
    return FileKind::lfsPointer;
  const size_t start = std::min(head.find_first_not_of(" \t\r\n"), head.size());
  const std::string_view content = head.substr(start);
  if (content.starts_with("<!DOCTYPE") || content.starts_with("<!doctype") ||
      content.starts_with("<html") || content.starts_with("<?xml"))
    return FileKind::html;
  return content.starts_with("{") ? FileKind::json : FileKind::text;
}

} // namespace

FileKind recognise(std::span<const std::byte> bytes) {
  if (bytes.empty())
    return FileKind::empty;
  const size_t headSize = std::min(bytes.size(), looksAt);
  const std::string_view head(reinterpret_cast<const char *>(bytes.data()), headSize);
  if (head.starts_with("GGUF"))
    return FileKind::gguf;
  if (ByteReader(bytes).read<uint32_t>() == llama2cMagic)
    return FileKind::llama2cVersioned;
  if (head.starts_with("PK\x03\x04"))
    return FileKind::zip;
  if (head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5)
    return FileKind::pickle;
  if (isText(head))
    return kindOfText(head);
  if (isSafetensors(bytes))
    return FileKind::safetensors;
  if (isSentencePiece(bytes))
    return FileKind::sentencePiece;
  if (looksLikeLlama2cTokenizer(bytes))
    return FileKind::llama2cTokenizer;
  return FileKind::unknown;
}

const char *describe(FileKind kind) {
  switch (kind) {
  case FileKind::empty:
    return "an empty file";
  case FileKind::gguf:
    return "a GGUF file";
  case FileKind::llama2cVersioned:
    return "a llama2.c checkpoint of version 1 or 2";
  case FileKind::llama2cTokenizer:
    return "a tokenizer of llama2.c";
  case FileKind::safetensors:
    return "a safetensors file";
  case FileKind::sentencePiece:
    return "a SentencePiece tokenizer";
  case FileKind::zip:
    return "a zip archive (PyTorch's checkpoints are such)";
  case FileKind::pickle:
    return "a Python pickle (old PyTorch checkpoints are such)";
  case FileKind::lfsPointer:
    return "a Git LFS pointer, not the file it stands for (git lfs pull fetches that)";
  case FileKind::html:
    return "an HTML page (what a failed download leaves)";
  case FileKind::json:
    return "a JSON file";
  case FileKind::text:
    return "a text file";
  case FileKind::unknown:
    return "of no kind known here";
  }
  return "of no kind known here";
}

} // namespace heddle
