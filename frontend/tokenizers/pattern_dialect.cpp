#include "frontend/tokenizers/pattern_dialect.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace heddle {

namespace {

// The two dialects differ in what `\s`, `\w` and `\h` are: PCRE2 counts U+180E as a space, no marks
// as parts of words, and `\h` as spaces. Written as the contents of a class.
constexpr std::string_view spaces = R"(\x{9}-\x{d}\x{85}\p{Z})";
constexpr std::string_view wordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside of classes Oniguruma takes these digits and fractions for parts of words too.
constexpr std::string_view wordCharactersAlone =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view hexDigits = "0-9A-Fa-f";

constexpr size_t mostRunsAhead = 200; ///< PCRE2 numbers callouts up to 255, its own

class Translator {
public:
  explicit Translator(std::string_view expression) : source(expression) {}

  Result<Dialect> run() {
    while (at < source.size() && !wrong)
      step();
    if (wrong)
      return dataError(
          fmt::format("the expression {} is not understood: {}", inQuotes(source), *wrong));
    return std::move(dialect);
  }

private:
  bool isNext(std::string_view text) const { return source.substr(at).starts_with(text); }

  void refuse(std::string_view what) { wrong = fmt::format("it has {} (at {})", what, at); }

  void step() {
    if (source[at] == '\\')
      return escape();
    if (depth > 0)
      return inClass();
    if (isNext("(*") || isNext("(?C"))
      return refuse("a verb or callout");
    if (isNext("(?=") && runAhead())
      return;
    if (source[at] == '[')
      openClass();
    else
      dialect.expression += source[at++];
  }

  void openClass() {
    ++depth;
    for (const std::string_view sign :
         {"[^]", "[]", "[^", "["}) // a bracket that comes first is one
      if (isNext(sign)) {
        dialect.expression += sign;
        at += sign.size();
        return;
      }
  }

  /// A class joined to the one around it is its contents. What is negated or intersected there has
  /// no spelling in PCRE2.
  void inClass() {
    if (isNext("[:") && source.find(":]", at) != std::string_view::npos) {
      const size_t end = source.find(":]", at) + 2;
      dialect.expression += source.substr(at, end - at);
      at = end;
    } else if (isNext("[^") || isNext("[]") || isNext("&&")) {
      refuse("a class inside a class that is negated, intersected or begins with a bracket");
    } else if (isNext("[")) {
      ++depth;
      ++at;
    } else {
      if (isNext("]") && --depth > 0)
        ++at;
      else
        dialect.expression += source[at++];
    }
  }

  void escape() {
    const char letter = at + 1 < source.size() ? source[at + 1] : '\0';
    if (depth == 0 && (letter == 'b' || letter == 'B')) {
      dialect.expression += wordBoundary(letter == 'B');
      at += 2;
      return;
    }
    const bool isNegated = letter == 'S' || letter == 'W' || letter == 'H';
    const std::string_view words = depth > 0 ? wordCharacters : wordCharactersAlone;
    const std::string_view set = letter == 's' || letter == 'S'   ? spaces
                                 : letter == 'w' || letter == 'W' ? words
                                 : letter == 'h' || letter == 'H' ? hexDigits
                                                                  : "";
    if (!set.empty() && !(depth > 0 && isNegated)) {
      const char *open = depth > 0 ? "" : isNegated ? "[^" : "[";
      dialect.expression += fmt::format("{}{}{}", open, set, depth > 0 ? "" : "]");
      at += 2;
    } else if (letter == 'u' && isHexadecimal(source.substr(std::min(at + 2, source.size()), 4))) {
      dialect.expression += fmt::format("\\x{{{}}}", source.substr(at + 2, 4));
      at += 6;
    } else if (letter == 'p' || letter == 'P') {
      property();
    } else {
      dialect.expression += source.substr(at, 2);
      at += 2;
    }
  }

  static bool isHexadecimal(std::string_view digits) {
    return digits.size() == 4 &&
           digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
  }

  /// Marks are parts of words, which they are not to PCRE2's `\b`.
  static std::string wordBoundary(bool isNegated) {
    const std::string_view after = isNegated ? "=" : "!", otherwise = isNegated ? "!" : "=";
    return fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", wordCharactersAlone,
                       after, otherwise);
  }

  /// A name of more than two letters is a script's: PCRE2 would take it for the characters that
  /// the script shares with others too.
  void property() {
    const size_t close = source.find('}', at);
    const std::string_view rest = source.substr(at + 2);
    if (!rest.starts_with('{') || close == std::string_view::npos || close - at < 6) {
      dialect.expression += source.substr(at, 2);
      at += 2;
      return;
    }
    const std::string_view name = source.substr(at + 3, close - at - 3);
    const bool isScript = name.find_first_of(":=^") == std::string_view::npos && name != "Any" &&
                          name != "Alphabetic";
    dialect.expression +=
        fmt::format("{}{{{}{}}}", source.substr(at, 2), isScript ? "sc:" : "", name);
    at = close + 1;
  }

  /// The length of the one character or class at the start of `text`, 0 where there is none.
  static size_t atomLength(std::string_view text) {
    const auto upTo = [&](char sign) {
      const size_t found = text.find(sign);
      return found == std::string_view::npos ? 0 : found + 1;
    };
    if (text.starts_with("\\p{") || text.starts_with("\\P{"))
      return upTo('}');
    if (text.starts_with("\\d"))
      return 2;
    // Without escapes and classes inside, where the end would be harder to see.
    const size_t end = text.starts_with('[') ? upTo(']') : 0;
    return end > 2 && text.substr(1, end - 2).find_first_of("[]\\&") == std::string_view::npos ? end
                                                                                               : 0;
  }

  /// Takes `text` away from `rest`.
  static bool takes(std::string_view &rest, std::string_view text) {
    if (!rest.starts_with(text))
      return false;
    rest.remove_prefix(text.size());
    return true;
  }

  static std::string_view takeAtom(std::string_view &rest) {
    const std::string_view atom = rest.substr(0, atomLength(rest));
    rest.remove_prefix(atom.size());
    return atom;
  }

  bool hasBackReferences() const {
    for (size_t i = 0; i + 1 < source.size(); ++i)
      if (source[i] == '\\' &&
          std::string_view("123456789kg").find(source[i + 1]) != std::string_view::npos)
        return true;
    return false;
  }

  /// `(?=(ATOM{k})*END)` or with `+`, END being `\b` or `(?!ATOM)`.
  bool runAhead() {
    std::string_view rest = source.substr(at);
    if (dialect.runsAhead.size() == mostRunsAhead || !takes(rest, "(?=("))
      return false;
    if (!takes(rest, "?:") && hasBackReferences())
      return false;
    const char *unitBegin = rest.data();
    if (takeAtom(rest).empty())
      return false;
    if (takes(rest, "{")) {
      const size_t close = rest.find('}');
      const std::string_view count = rest.substr(0, close);
      if (close == std::string_view::npos || count.empty() || count.size() > 3 ||
          count.find_first_not_of("0123456789") != std::string_view::npos ||
          count.find_first_not_of('0') == std::string_view::npos)
        return false;
      rest.remove_prefix(close + 1);
    }
    const std::string_view unit(unitBegin, static_cast<size_t>(rest.data() - unitBegin));
    const bool needsUnit = rest.starts_with(")+");
    if (!takes(rest, ")+") && !takes(rest, ")*"))
      return false;
    const char *endBegin = rest.data();
    if (takes(rest, "(?!")) {
      if (takeAtom(rest).empty() || !takes(rest, ")"))
        return false;
    } else if (!takes(rest, "\\b")) {
      return false;
    }
    const std::string_view end(endBegin, static_cast<size_t>(rest.data() - endBegin));
    if (!takes(rest, ")") ||
        (!rest.empty() && std::string_view("*+?{").find(rest.front()) != std::string_view::npos))
      return false;
    const auto inner = Translator(unit).run(), outer = Translator(end).run();
    if (!inner || !outer)
      return false;
    dialect.runsAhead.push_back({inner->expression, outer->expression, needsUnit});
    dialect.expression += fmt::format("(?C{})", dialect.runsAhead.size());
    at = source.size() - rest.size();
    return true;
  }

  std::string_view source;
  size_t at = 0;
  int depth = 0; ///< of classes
  Dialect dialect;
  std::optional<std::string> wrong;
};

} // namespace

Result<Dialect> translateExpression(std::string_view expression) {
  return Translator(expression).run();
}

} // namespace heddle
