#include "frontend/tokenizers/tokenizer.h"

#include "frontend/formats/file_kind.h"
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/gguf_tokenizer.h"
#include "frontend/tokenizers/hf_tokenizer.h"
#include "frontend/tokenizers/llama2c_tokenizer.h"
#include "frontend/tokenizers/sentencepiece.h"
#include "runtime/mapped_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

namespace heddle {

namespace {
constexpr size_t longestText = size_t{1} << 26;
}

std::vector<int32_t> endsOf(const TextMarks &marks) {
  std::vector<int32_t> ends;
  for (const int32_t mark : {marks.eos, marks.bos})
    if (mark != TextMarks::none && std::ranges::find(ends, mark) == ends.end())
      ends.push_back(mark);
  return ends;
}

bool Tokenizer::endsText(int32_t token) const {
  return std::ranges::find(textMarks.ends, token) != textMarks.ends.end();
}

Result<std::vector<int32_t>> Tokenizer::encode(std::string_view text, bool withBos,
                                               MarkSpelling spelling) const {
  if (text.size() > longestText)
    return usageError(
        fmt::format("a text of {} bytes is too long to be tokenized, expected at most "
                    "{}",
                    text.size(), longestText));
  std::vector<int32_t> tokens;
  if (withBos && bos() == TextMarks::none)
    return usageError("the tokenizer has no mark that begins a text");
  if (withBos)
    tokens.push_back(bos());
  if (Status status = cut(text, spelling, tokens); !status)
    return status.error();
  return tokens;
}

int32_t Tokenizer::following(int32_t previous, int32_t token) const {
  const auto inside = piece(token, token), added = piece(previous, token);
  const bool isMark = !inside || inside->empty() || token == bos();
  return isMark || (beginsWithText && added->empty()) ? previous : token;
}

int32_t Tokenizer::lastOf(std::span<const int32_t> tokens) const {
  return std::accumulate(
      tokens.begin(), tokens.end(), int32_t{TextMarks::none},
      [&](int32_t previous, int32_t token) { return following(previous, token); });
}

Result<std::string> Tokenizer::decode(std::span<const int32_t> tokens) const {
  std::string text;
  int32_t previous = TextMarks::none;
  for (const int32_t token : tokens) {
    const auto added = piece(previous, token);
    if (!added)
      return added.error();
    text += *added;
    previous = following(previous, token);
  }
  return text;
}

static std::string_view asText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

Result<std::string> tokenizerFile(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(path, ignored))
    return path;
  for (const char *name : {"tokenizer.json", "tokenizer.model"})
    if (const fs::path file = fs::path(path) / name; fs::exists(file, ignored))
      return file.string();
  return dataError(path + ": holds no tokenizer.json and no tokenizer.model");
}

/// Counts the tokens of a file, whose kind is known.
static Result<int64_t> countTokens(FileKind kind, std::span<const std::byte> bytes,
                                   const std::string &path) {
  switch (kind) {
  case FileKind::sentencePiece:
    return countSentencePieces(bytes, path);
  case FileKind::gguf: {
    const auto file = parseGguf(bytes, path);
    return file ? countGgufTokens(*file) : Result<int64_t>(file.error());
  }
  case FileKind::json:
    return countHfTokens(asText(bytes), path);
  default: // A damaged tokenizer is of unknown kind; the reader then says where the damage is.
    return countLlama2cTokens(bytes, path);
  }
}

static bool mayBeTokenizer(FileKind kind) {
  return kind == FileKind::llama2cTokenizer || kind == FileKind::sentencePiece ||
         kind == FileKind::gguf || kind == FileKind::json;
}

bool mayBeTokenizer(const std::string &path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return true;
  const auto file = runtime::MappedFile::open(path);
  return file && mayBeTokenizer(recognise(file->bytes()));
}

Result<int64_t> countTokens(const std::string &path) {
  const auto file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();
  return countTokens(recognise(file->bytes()), file->bytes(), path);
}

static Result<std::unique_ptr<Tokenizer>> readTokenizer(const std::string &path,
                                                        int64_t vocabularySize) {
  const auto file = runtime::MappedFile::open(path);
  if (!file)
    return file.error();
  const std::span<const std::byte> bytes = file->bytes();
  const FileKind kind = recognise(bytes);
  if (!mayBeTokenizer(kind) && kind != FileKind::unknown)
    return dataError(
        fmt::format("{}: is {}; heddle reads tokenizers of llama2.c (tokenizer.bin), "
                    "SentencePiece (tokenizer.model), Hugging Face (tokenizer.json) and GGUF files",
                    path, describe(kind)));
  const auto count = countTokens(kind, bytes, path);
  if (!count)
    return count.error();
  if (vocabularySize != anyVocabulary && *count > vocabularySize)
    return dataError(fmt::format("{}: has {} tokens, the model has {}: it is not this model's "
                                 "tokenizer",
                                 path, *count, vocabularySize));
  if (kind == FileKind::sentencePiece)
    return readSentencePiece(bytes, path, vocabularySize);
  if (kind == FileKind::json)
    return readHfTokenizer(asText(bytes), path,
                           readTokenizerFolder(std::filesystem::path(path).parent_path().string()),
                           vocabularySize);
  if (kind == FileKind::gguf) {
    const auto header = parseGguf(bytes, path);
    return header ? readGgufTokenizer(*header, vocabularySize)
                  : Result<std::unique_ptr<Tokenizer>>(header.error());
  }
  return readLlama2cTokenizer(bytes, path,
                              vocabularySize == anyVocabulary ? *count : vocabularySize);
}

Result<std::unique_ptr<Tokenizer>> openTokenizer(const std::string &path, int64_t vocabularySize) {
  const auto file = tokenizerFile(path);
  if (!file)
    return file.error();
  auto tokenizer = readTokenizer(*file, vocabularySize);
  if (!tokenizer || vocabularySize == anyVocabulary)
    return tokenizer;
  const TextMarks &marks = (*tokenizer)->marks();
  if (marks.addsBos && marks.bos >= vocabularySize)
    return dataError(fmt::format("{}: begins texts with {}, whose id {} is outside the model's "
                                 "vocabulary of {} words",
                                 *file, inQuotes((*tokenizer)->spelling(marks.bos)), marks.bos,
                                 vocabularySize));
  return tokenizer;
}

} // namespace heddle
