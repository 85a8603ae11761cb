#include "frontend/tokenizers/pattern_dialect.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/pattern_class.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace heddle {

namespace {

constexpr size_t mostRunsAhead = 200; ///< PCRE2 numbers callouts up to 255, its own

class Translator {
public:
  explicit Translator(std::string_view expression) : source(expression) {}

  Result<Dialect> run() {
    startRunsAfterOthers();
    while (at < source.size() && !wrong)
      step();
    closeOptions();
    if (wrong)
      return dataError(
          fmt::format("the expression {} is not understood: {}", inQuotes(source), *wrong));
    return std::move(dialect);
  }

private:
  /// A group that is open.
  struct Group {
    size_t start; ///< in the translation
    bool hasOptions;
    size_t options; ///< groups in it that its end closes, each of an option
  };

  bool isNext(std::string_view text) const { return source.substr(at).starts_with(text); }

  void refuse(std::string_view what) {
    if (!wrong)
      wrong = fmt::format("it has {} (at {})", what, at);
  }

  void closeOptions() { dialect.expression.append(std::exchange(options, 0), ')'); }

  /// Copies what a quantifier may follow.
  void copyItem(size_t length) {
    item = dialect.expression.size();
    dialect.expression += source.substr(at, length);
    at += length;
  }

  /// Adds what `take` makes of the source from here on.
  template <class Take>
  void addItem(const Take &take) {
    std::string_view rest = source.substr(at);
    auto translated = take(rest);
    if (!translated)
      return refuse(translated.error().message);
    item = dialect.expression.size();
    dialect.expression += *translated;
    at = source.size() - rest.size();
  }

  void step() {
    switch (source[at]) {
    case '\\':
      return escape();
    case '[':
      return addItem(takeClass);
    case '(':
      return open();
    case ')':
      closeOptions();
      if (!groups.empty()) {
        item = groups.back().start;
        hasOptions = groups.back().hasOptions;
        options = groups.back().options;
        groups.pop_back();
      }
      dialect.expression += source[at++];
      return;
    case '{':
      return repeat();
    case '*':
    case '+':
    case '?':
      dialect.expression += source[at++];
      return;
    default:
      copyItem(characterLength(source.substr(at)));
    }
  }

  void open() {
    if (isNext("(*") || isNext("(?C"))
      return refuse("a verb or callout");
    if (isNext("(?#")) {
      const size_t end = std::min(source.find(')', at), source.size() - 1) + 1;
      at = end;
      return;
    }
    // Options may change what a unit of a run is.
    if (isNext("(?=") && !hasOptions && runAhead())
      return;
    groups.push_back({dialect.expression.size(), hasOptions, std::exchange(options, 0)});
    const size_t end = source.find_first_not_of("imsx-", at + 2);
    if (!isNext("(?") || end == at + 2 || end == std::string_view::npos ||
        (source[end] != ':' && source[end] != ')')) {
      dialect.expression += source[at++];
      return;
    }
    std::string letters(source.substr(at, end - at));
    if (letters.find('x') != std::string::npos)
      return refuse("the option x");
    std::ranges::replace(letters, 'm', 's'); // that a dot is a line feed too
    dialect.expression += letters + ":";
    hasOptions = true;
    if (source[end] == ')') { // a group as far as the one around it, `a(?i)b|c` is `a(?i:b|c)`
      options = groups.back().options + 1;
      groups.pop_back();
    }
    at = end + 1;
  }

  /// `{n,m}`, which PCRE2 would take otherwise before a plus, and without n: as characters. A
  /// question mark makes of `{n}` alone what may be missing.
  void repeat() {
    const std::string_view rest = source.substr(at);
    const size_t close = rest.find_first_not_of("0123456789,", 1);
    const std::string_view counts = close == std::string_view::npos || rest[close] != '}'
                                        ? std::string_view()
                                        : rest.substr(1, close - 1);
    const size_t comma = counts.find(',');
    if (counts.empty() || counts == "," || (comma != counts.rfind(',')))
      return copyItem(1);
    at += close + 1;
    const std::string all = fmt::format("{{{}{}}}", comma == 0 ? "0" : "", counts);
    if (isNext("+") || (isNext("?") && comma == std::string_view::npos)) {
      dialect.expression.insert(item, "(?:");
      dialect.expression += all + ")";
    } else {
      dialect.expression += all;
    }
  }

  void escape() {
    const char letter = at + 1 < source.size() ? source[at + 1] : '\0';
    const std::string_view set = charactersOf(letter, false);
    if (set.empty() && letter != 'b' && letter != 'B')
      return addItem(takeEscape);
    item = dialect.expression.size();
    at += 2;
    dialect.expression += set.empty() ? wordBoundary(letter == 'B')
                                      : fmt::format("[{}{}]", isUpper(letter) ? "^" : "", set);
  }

  static bool isUpper(char letter) { return letter >= 'A' && letter <= 'Z'; }

  /// Marks are parts of words, which they are not to PCRE2's `\b`.
  static std::string wordBoundary(bool isNegated) {
    const std::string_view after = isNegated ? "=" : "!", otherwise = isNegated ? "!" : "=";
    return fmt::format("(?:(?<=[{0}])(?{1}[{0}])|(?<![{0}])(?{2}[{0}]))", charactersOf('w', false),
                       after, otherwise);
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
    return source.find("(?(") != std::string_view::npos;
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
    size_t length = 1;
    if (takes(rest, "{")) {
      const size_t close = rest.find('}');
      const std::string_view count = rest.substr(0, close);
      if (close == std::string_view::npos || count.empty() || count.size() > 3 ||
          count.find_first_not_of("0123456789") != std::string_view::npos ||
          count.find_first_not_of('0') == std::string_view::npos)
        return false;
      std::from_chars(count.data(), count.data() + count.size(), length);
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
    item = dialect.expression.size();
    dialect.runsAhead.push_back({inner->expression, outer->expression, needsUnit, length});
    dialect.expression += fmt::format("(?C{})", dialect.runsAhead.size());
    at = source.size() - rest.size();
    return true;
  }

  /// `ATOM+$` as a whole: where it fails at the start of a run, it fails everywhere in it, and it
  /// need not be tried there.
  void startRunsAfterOthers() {
    std::string_view rest = source;
    const std::string_view atom = rest.starts_with("\\s") ? rest.substr(0, 2) : takeAtom(rest);
    if (atom.empty() || source.substr(atom.size()) != "+$")
      return;
    if (const auto translated = Translator(atom).run())
      dialect.expression = fmt::format("(?<!{})", translated->expression);
  }

  std::string_view source;
  size_t at = 0;
  size_t item = 0; ///< what a quantifier here would repeat, in the translation
  bool hasOptions = false;
  size_t options = 0; ///< as of a group
  std::vector<Group> groups;
  Dialect dialect;
  std::optional<std::string> wrong;
};

} // namespace

Result<Dialect> translateExpression(std::string_view expression) {
  return Translator(expression).run();
}

} // namespace heddle
