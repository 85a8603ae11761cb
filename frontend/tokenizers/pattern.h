// Regular expressions over Unicode text, by PCRE2.
#pragma once

#include "runtime/result.h"

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// Where a text was matched, in bytes.
struct TextRange {
  size_t begin = 0, end = 0;
};

/// A compiled expression, in the spelling of tokenizer.json (Oniguruma's). Matching needs no
/// stack: what PCRE2 must remember lies on the heap, and is limited. Immutable and cheap to copy.
class Pattern {
public:
  /// Errors (data): an expression that PCRE2 does not understand, and where.
  static Result<Pattern> compile(std::string_view expression);

  /// An expression that matches `text` alone.
  static Pattern literal(std::string text);

  /// All matches in `text`, valid UTF-8, from left to right; none overlaps another. Those
  /// of an expression that only looks ahead are empty.
  /// Errors (data): the expression takes too many steps or too much memory.
  Result<std::vector<TextRange>> findAll(std::string_view text) const;

  const std::string &expression() const { return source; }

private:
  Pattern() = default;
  Result<std::vector<TextRange>> findByCode(std::string_view text) const;

  std::string source;
  std::shared_ptr<const void> code; ///< null for a literal
};

} // namespace heddle
