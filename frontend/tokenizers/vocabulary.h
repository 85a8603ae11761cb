// The tokens of a tokenizer.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heddle {

/// What a token stands for, as SentencePiece and GGUF number it.
enum class TokenKind : uint8_t {
  normal = 1,
  unknown,     ///< what the vocabulary cannot spell
  control,     ///< a mark: no text
  userDefined, ///< text that is never divided
  unused,
  byte, ///< one byte, spelled <0xHH>
};

struct Token {
  std::string text;
  double score = 0;
  TokenKind kind = TokenKind::normal;
};

/// Tokens by id. Immutable; moving keeps the addresses of its texts.
class Vocabulary {
public:
  static constexpr int32_t none = -1;

  explicit Vocabulary(std::vector<Token> tokens);
  Vocabulary(Vocabulary &&) = default;
  Vocabulary(const Vocabulary &) = delete;

  int32_t size() const { return static_cast<int32_t>(tokens.size()); }
  const Token &operator[](int32_t id) const { return tokens[static_cast<size_t>(id)]; }

  /// The token of that spelling, marks apart, or `none`. Of twins, the first.
  int32_t find(std::string_view text) const;

  /// The tokens of the 256 bytes, `none` where there is none: those of kind byte, or of that
  /// spelling where no token is of that kind.
  const std::array<int32_t, 256> &bytes() const { return byteTokens; }

private:
  std::vector<Token> tokens;
  std::unordered_map<std::string_view, int32_t> ids;
  std::array<int32_t, 256> byteTokens;
};

/// The byte that `text` spells as <0xHH>, or -1.
int spelledByte(std::string_view text);

} // namespace heddle
