// Regular expressions over Unicode text, by PCRE2.
#pragma once

#include "frontend/tokenizers/large_allocator.h"
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
using TextRanges = LargeVector<TextRange>;

/// A compiled expression, in the spelling of tokenizer.json (Oniguruma's). Matching needs no
/// stack: what PCRE2 must remember lies on the heap, and is limited. Immutable and cheap to copy.
class Pattern {
public:
  /// Errors (data): an expression that PCRE2 does not understand, and where.
  static Result<Pattern> compile(std::string_view expression);

  /// An expression that matches `text` alone.
  static Pattern literal(std::string text);

  const std::string &expression() const { return source; }

private:
  friend class PatternSearch;
  struct Code;
  Pattern() = default;

  std::string source;
  std::shared_ptr<const Code> code; ///< null for a literal
};

/// A search in a text or in all parts of one, which share what it may cost: steps of the
/// expression, and characters that it walks over. That is several times what an expression takes
/// that looks at each character a few times.
class PatternSearch {
public:
  /// `bytes`: of all parts.
  PatternSearch(const Pattern &pattern, size_t bytes);
  ~PatternSearch();

  /// Makes `found` all matches in `text`, valid UTF-8, from left to right; none overlaps another.
  /// Those of an expression that only looks ahead are empty.
  /// Errors (data): the expression takes more work or memory than there is.
  Status findAll(std::string_view text, TextRanges &found);

private:
  struct State;
  std::unique_ptr<State> state;
};

} // namespace heddle
