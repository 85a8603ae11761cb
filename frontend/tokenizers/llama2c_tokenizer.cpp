#include "frontend/tokenizers/llama2c_tokenizer.h"

#include "frontend/formats/byte_reader.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <queue>

namespace heddle {

namespace {

constexpr int32_t unknownToken = 0;
constexpr int32_t firstByteToken = 3; ///< the 256 bytes follow unknown, beginning and end
constexpr int32_t fewestTokens = firstByteToken;
constexpr int32_t longestWord = 1 << 16;
constexpr size_t largestFile = size_t{1} << 26;
constexpr size_t longestText = size_t{1} << 26;
constexpr float lowestScore = -1e10f; ///< llama2.c joins nothing whose score is not above this
constexpr std::string_view prefix = " ";

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
size_t characterLength(std::string_view text) {
  size_t length = 1;
  while (length < 4 && length < text.size() && isContinuation(text[length]))
    ++length;
  return length;
}

/// The 256 bytes, to point at.
const std::array<char, 256> &allBytes() {
  static const std::array<char, 256> bytes = [] {
    std::array<char, 256> all{};
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<char>(i);
    return all;
  }();
  return bytes;
}

int hexDigit(char c) {
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'A' && c <= 'F')
    return c - 'A' + 10;
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return -1;
}

} // namespace

/// A text on its way to tokens. Pieces are a list linked through the indices of their places, which
/// stay in the order of the text.
struct Llama2cTokenizer::Joining {
  static constexpr uint32_t none = ~uint32_t{0};

  struct Piece {
    uint32_t start;  ///< first byte in `text`
    uint32_t length; ///< 0 once joined to the piece before
    int32_t token;
    uint32_t previous;
    uint32_t next;
    bool joins; ///< false for bytes
  };

  /// A joint that was possible when it was found. It still is if the pieces there still cover the
  /// same bytes: the same bytes are the same word.
  struct Joint {
    float score;
    int32_t token;
    uint32_t left;
    uint32_t length;

    /// Lower priority: a lower score, or further right.
    bool operator<(const Joint &other) const {
      return score != other.score ? score < other.score : left > other.left;
    }
  };

  std::string text;
  std::vector<Piece> pieces;
  std::priority_queue<Joint> joints;

  void append(uint32_t start, uint32_t length, int32_t token, bool joins) {
    const auto index = static_cast<uint32_t>(pieces.size());
    if (index > 0)
      pieces.back().next = index;
    pieces.push_back({start, length, token, index > 0 ? index - 1 : none, none, joins});
  }

  bool isStillPossible(const Joint &joint) const {
    const Piece &left = pieces[joint.left];
    return left.length != 0 && left.next != none &&
           left.length + pieces[left.next].length == joint.length;
  }

  void apply(const Joint &joint) {
    Piece &left = pieces[joint.left];
    Piece &right = pieces[left.next];
    left.length = joint.length;
    left.token = joint.token;
    left.next = right.next;
    right.length = 0;
    if (left.next != none)
      pieces[left.next].previous = joint.left;
  }
};

Llama2cTokenizer::Llama2cTokenizer(std::vector<Word> all, size_t longest)
    : words(std::move(all)), longest(longest) {
  ids.reserve(words.size());
  for (int32_t token = firstByteToken; token < static_cast<int32_t>(words.size()); ++token)
    if (byteOf(token) < 0)
      ids.try_emplace(words[static_cast<size_t>(token)].text, token); // of twins, the first
}

Result<std::unique_ptr<Llama2cTokenizer>> Llama2cTokenizer::parse(std::span<const std::byte> bytes,
                                                                  const std::string &name,
                                                                  int64_t vocabularySize) {
  TokenReader reader(bytes, name);
  if (Status status = reader.readHeader(); !status)
    return status.error();
  std::vector<Word> words;
  size_t longest = 0;
  while (!reader.atEnd()) {
    const auto token = reader.next();
    if (!token)
      return token.error();
    // What a larger vocabulary would cost is not paid for; it is only counted.
    if (reader.count() > vocabularySize)
      continue;
    words.push_back({token->text, token->score});
    longest = std::max(longest, token->text.size());
  }
  if (reader.count() != vocabularySize)
    return dataError(fmt::format("{}: has {} tokens, the model has {}: it is not this model's "
                                 "tokenizer",
                                 name, reader.count(), vocabularySize));
  if (reader.count() < fewestTokens)
    return dataError(fmt::format("{}: has {} tokens, expected at least {}: unknown, beginning and "
                                 "end of text",
                                 name, reader.count(), fewestTokens));
  return std::unique_ptr<Llama2cTokenizer>(new Llama2cTokenizer(std::move(words), longest));
}

Result<std::unique_ptr<Llama2cTokenizer>>
Llama2cTokenizer::parse(runtime::MappedFile file, const std::string &name, int64_t vocabularySize) {
  auto tokenizer = parse(file.bytes(), name, vocabularySize);
  if (tokenizer)
    (*tokenizer)->file = std::make_unique<runtime::MappedFile>(std::move(file));
  return tokenizer;
}

int Llama2cTokenizer::byteOf(int32_t token) const {
  const std::string_view text = words[static_cast<size_t>(token)].text;
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>')
    return -1;
  const int high = hexDigit(text[3]), low = hexDigit(text[4]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/// Appends a character: the word it is, or else its bytes.
void Llama2cTokenizer::cut(Joining &joining, std::string_view character) const {
  const auto start = static_cast<uint32_t>(character.data() - joining.text.data());
  if (const auto found = ids.find(character); found != ids.end()) {
    joining.append(start, static_cast<uint32_t>(character.size()), found->second, true);
    return;
  }
  for (uint32_t i = 0; i < character.size(); ++i) {
    const int byte = static_cast<unsigned char>(character[i]);
    const int32_t token = firstByteToken + byte;
    const bool isThere = token < vocabularySize() && byteOf(token) == byte;
    joining.append(start + i, 1, isThere ? token : unknownToken, false);
  }
}

/// Queues the joint of the piece `left` with the one after it, if it is a word.
void Llama2cTokenizer::consider(Joining &joining, uint32_t left) const {
  if (left == Joining::none)
    return;
  const Joining::Piece &piece = joining.pieces[left];
  if (piece.next == Joining::none)
    return;
  const Joining::Piece &next = joining.pieces[piece.next];
  const uint32_t length = piece.length + next.length;
  if (!piece.joins || !next.joins || length > longest)
    return;
  const auto found = ids.find(std::string_view(joining.text).substr(piece.start, length));
  if (found == ids.end())
    return;
  const float score = words[static_cast<size_t>(found->second)].score;
  if (score > lowestScore)
    joining.joints.push({score, found->second, left, length});
}

Result<std::vector<int32_t>> Llama2cTokenizer::encode(std::string_view text, bool withBos) const {
  if (text.size() > longestText)
    return usageError(
        fmt::format("a text of {} bytes is too long to be tokenized, expected at most "
                    "{}",
                    text.size(), longestText));
  std::vector<int32_t> tokens;
  if (withBos)
    tokens.push_back(bos());
  if (text.empty())
    return tokens;

  Joining joining;
  joining.text.reserve(prefix.size() + text.size());
  joining.text.append(prefix).append(text);
  joining.pieces.reserve(joining.text.size());
  cut(joining, std::string_view(joining.text).substr(0, prefix.size()));
  for (auto rest = std::string_view(joining.text).substr(prefix.size()); !rest.empty();) {
    const size_t length = characterLength(rest);
    cut(joining, rest.substr(0, length));
    rest.remove_prefix(length);
  }
  for (uint32_t i = 0; i < joining.pieces.size(); ++i)
    consider(joining, i);
  while (!joining.joints.empty()) {
    const Joining::Joint best = joining.joints.top();
    joining.joints.pop();
    if (!joining.isStillPossible(best))
      continue;
    joining.apply(best);
    consider(joining, joining.pieces[best.left].previous);
    consider(joining, best.left);
  }
  for (uint32_t i = 0; i != Joining::none; i = joining.pieces[i].next)
    tokens.push_back(joining.pieces[i].token);
  return tokens;
}

Result<std::string_view> Llama2cTokenizer::piece(int32_t previous, int32_t token) const {
  if (token < 0 || token >= vocabularySize())
    return usageError(fmt::format("token id {} is outside the vocabulary, expected 0 to {}", token,
                                  vocabularySize() - 1));
  if (token == bos() || token == eos())
    return std::string_view();
  if (const int byte = byteOf(token); byte >= 0)
    return std::string_view(&allBytes()[static_cast<size_t>(byte)], 1);
  std::string_view text = words[static_cast<size_t>(token)].text;
  // The space that encoding put before the text.
  if (previous == bos() && text.starts_with(prefix))
    text.remove_prefix(prefix.size());
  return text;
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
