#include "frontend/tokenizers/llama2c_tokenizer.h"

#include "frontend/formats/byte_reader.h"
#include "frontend/tokenizers/pipeline_tokenizer.h"
#include "runtime/text.h"

#include <fmt/format.h>

#include <cmath>

namespace heddle {

namespace {

constexpr int32_t unknownToken = 0, bosToken = 1, eosToken = 2;
constexpr int64_t fewestTokens = 3; // those
constexpr int32_t longestWord = 1 << 16;
constexpr size_t largestFile = size_t{1} << 26;
constexpr double lowestScore = -1e10; ///< llama2.c joins nothing whose score is not above this

/// Reads the tokens of a file one by one.
class TokenReader {
public:
  TokenReader(std::span<const std::byte> bytes, const std::string &name)
      : reader(bytes), name(name) {}

  Status readHeader() {
    if (reader.left() > largestFile)
      return dataError(
          fmt::format("{}: {} bytes are too many for a tokenizer of llama2.c, expected "
                      "at most {}",
                      name, reader.left(), largestFile));
    const auto length = reader.read<int32_t>();
    if (!length)
      return dataError(
          fmt::format("{}: ends after {} bytes, inside the field max_token_length of a "
                      "llama2.c tokenizer",
                      name, reader.left()));
    if (*length < 1 || *length > longestWord)
      return dataError(fmt::format("{}: field max_token_length (offset 0) of a llama2.c tokenizer "
                                   "is {}, expected 1 to {}",
                                   name, *length, longestWord));
    maxLength = *length;
    return {};
  }

  bool atEnd() const { return reader.left() == 0; }
  int64_t count() const { return index; }

  struct Token {
    float score;
    std::string_view text;
  };

  Result<Token> next() {
    const auto score = reader.read<float>();
    if (!score)
      return cutShort("score");
    if (!std::isfinite(*score))
      return fieldError("score", fmt::format("{}, expected a finite number", *score));
    const auto length = reader.read<int32_t>();
    if (!length)
      return cutShort("length");
    if (*length < 0 || *length > maxLength)
      return fieldError("length",
                        fmt::format("{}, expected 0 to max_token_length, {}", *length, maxLength));
    const auto text = reader.text(static_cast<size_t>(*length));
    if (!text)
      return cutShort("text");
    ++index;
    return Token{*score, *text};
  }

private:
  Error cutShort(const char *field) const {
    return dataError(fmt::format("{}: is cut short: the {} of token {} (offset {}) of a llama2.c "
                                 "tokenizer has {} bytes left",
                                 name, field, index, reader.offset(), reader.left()));
  }

  Error fieldError(const char *field, const std::string &wrong) const {
    return dataError(fmt::format("{}: the {} of token {} (offset {}) of a llama2.c tokenizer is {}",
                                 name, field, index, reader.offset() - sizeof(int32_t), wrong));
  }

  ByteReader reader;
  const std::string &name;
  int32_t maxLength = 0;
  int64_t index = 0;
};

bool isContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Bytes of the character at the start of `text`, as llama2.c takes it: a byte and the at most
/// three continuation bytes after it, valid or not.
size_t looseCharacterLength(std::string_view text) {
  size_t length = 1;
  while (length < 4 && length < text.size() && isContinuation(text[length]))
    ++length;
  return length;
}

Token tokenOf(int64_t id, std::string_view text, float score) {
  const bool isByte = spelledByte(text) >= 0;
  const TokenKind kind = id == unknownToken                 ? TokenKind::unknown
                         : id == bosToken || id == eosToken ? TokenKind::control
                         : isByte                           ? TokenKind::byte
                                                            : TokenKind::normal;
  return {std::string(text), static_cast<double>(score), kind};
}

/// What a token adds to a text.
std::string pieceOf(const Token &token) {
  if (token.kind == TokenKind::control)
    return "";
  const int byte = spelledByte(token.text);
  return byte >= 0 ? std::string(1, static_cast<char>(byte)) : token.text;
}

} // namespace

Result<std::unique_ptr<Tokenizer>> readLlama2cTokenizer(std::span<const std::byte> bytes,
                                                        const std::string &name,
                                                        int64_t vocabularySize) {
  TokenReader reader(bytes, name);
  if (Status status = reader.readHeader(); !status)
    return status.error();
  std::vector<Token> tokens;
  while (!reader.atEnd()) {
    const auto token = reader.next();
    if (!token)
      return token.error();
    // What a larger vocabulary would cost is not paid for; it is only counted.
    if (reader.count() <= vocabularySize)
      tokens.push_back(tokenOf(reader.count() - 1, token->text, token->score));
  }
  if (reader.count() != vocabularySize)
    return dataError(fmt::format("{}: has {}, the model has {}: it is not this model's "
                                 "tokenizer",
                                 name, counted(reader.count(), "token"), vocabularySize));
  if (reader.count() < fewestTokens)
    return dataError(fmt::format("{}: has {}, expected at least {}: unknown, beginning and "
                                 "end of text",
                                 name, counted(reader.count(), "token"), fewestTokens));
  Pipeline pipeline;
  for (const Token &token : tokens) {
    std::string piece = pieceOf(token);
    std::string first = token.text.starts_with(' ') ? withoutSpace(piece) : piece;
    pipeline.addPiece(std::move(piece), std::move(first));
  }
  pipeline.vocabulary = std::make_shared<const Vocabulary>(std::move(tokens));
  pipeline.model =
      scoreModel(pipeline.vocabulary, {.fallback = {.bytes = true, .unknown = unknownToken},
                                       .unknownJoins = false,
                                       .firstByteAlone = true,
                                       .characterLength = looseCharacterLength,
                                       .leastScore = lowestScore});
  pipeline.normalizers = {prepend(" ")};
  pipeline.keepsInvalid = true;
  pipeline.marks = {.bos = bosToken, .eos = eosToken, .addsBos = true};
  pipeline.marks.ends = endsOf(pipeline.marks);
  return PipelineTokenizer::create(std::move(pipeline));
}

Result<int64_t> countLlama2cTokens(std::span<const std::byte> bytes, const std::string &name) {
  TokenReader reader(bytes, name);
  if (Status status = reader.readHeader(); !status)
    return status.error();
  while (!reader.atEnd())
    if (const auto token = reader.next(); !token)
      return token.error();
  return reader.count();
}

bool looksLikeLlama2cTokenizer(std::span<const std::byte> bytes) {
  const std::string name;
  TokenReader reader(bytes, name);
  if (!reader.readHeader())
    return false;
  const auto first = reader.next();
  if (first && first->text == "<unk>")
    return true; // whatever damage follows
  if (!first)
    return false;
  while (!reader.atEnd())
    if (!reader.next())
      return false;
  return true;
}

} // namespace heddle
