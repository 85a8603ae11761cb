// Expressions in Oniguruma's spelling, which tokenizer.json uses, in that of PCRE2.
#pragma once

#include "runtime/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A look-ahead over what is left of a run, `(?=(?:\d{3})*\b)`: `unit` again and again, then `end`.
/// Whether it holds at a place depends on the place alone, so that a text needs one look at each.
struct RunAhead {
  std::string unit, end; ///< in PCRE2's spelling; a unit has one way to match
  bool needsUnit;        ///< at least one unit
  size_t length;         ///< characters of a unit
};

struct Dialect {
  std::string expression;               ///< of PCRE2
  std::vector<RunAhead> runsAhead = {}; ///< the expression has the callout `(?Cn)` for number n - 1
};

/// Errors (data): what PCRE2 would understand differently and has no spelling for.
Result<Dialect> translateExpression(std::string_view expression);

} // namespace heddle
