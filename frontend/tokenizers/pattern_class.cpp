#include "frontend/tokenizers/pattern_class.h"

#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

namespace heddle {

namespace {

// The two dialects differ in what `\s`, `\w` and `\h` are: PCRE2 counts U+180E as a space, no marks
// as parts of words, and `\h` as spaces.
constexpr std::string_view spaces = R"(\x{9}-\x{d}\x{85}\p{Z})";
constexpr std::string_view wordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside of classes Oniguruma takes these digits and fractions for parts of words too.
constexpr std::string_view wordCharactersAlone =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view hexDigits = "0-9A-Fa-f";
// All else; what is no part of a word cannot be listed so.
constexpr std::string_view noSpaces = R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Cn}\p{Co}\p{Cs})"
                                      R"(\x{0}-\x{8}\x{e}-\x{1f}\x{7f}-\x{84}\x{86}-\x{9f})";
constexpr std::string_view noHexDigits =
    R"(\x{0}-\x{2f}\x{3a}-\x{40}\x{47}-\x{60}\x{67}-\x{10ffff})";

/// The general categories of Unicode.
constexpr std::string_view categories[] = {"Lultmo", "Mnce", "Ndlo",  "Pcdseifo",
                                           "Smcko",  "Zslp", "Ccfnos"};

bool isCategory(std::string_view name) {
  return std::ranges::any_of(categories, [&](std::string_view category) {
    return name.size() <= 2 && name.starts_with(category[0]) &&
           (name.size() == 1 || category.find(name[1], 1) != std::string_view::npos);
  });
}

constexpr int deepestClass = 20;

bool isHexadecimal(std::string_view digits, size_t count) {
  return digits.size() == count &&
         digits.find_first_not_of("0123456789abcdefABCDEF") == std::string_view::npos;
}

/// The length of the escape that `text` begins with.
size_t escapeLength(std::string_view text) {
  if (text.size() < 2)
    return text.size();
  const char letter = text[1], open = text.size() > 2 ? text[2] : '\0';
  if (std::string_view("xogk").find(letter) != std::string_view::npos &&
      std::string_view("{<'").find(open) != std::string_view::npos) {
    const size_t close = text.find(open == '{' ? '}' : open == '<' ? '>' : '\'', 3);
    return close == std::string_view::npos ? text.size() : close + 1;
  }
  const std::string_view digits = letter == 'x' ? text.substr(2, 2) : text.substr(2);
  const bool hasDigits = letter == 'x' || (letter >= '0' && letter <= '9');
  if (hasDigits)
    return 2 +
           std::min(digits.size(), digits.find_first_not_of(letter == 'x' ? "0123456789abcdefABCDEF"
                                                                          : "0123456789"));
  return 1 + characterLength(text.substr(1)) + (letter == 'c' && open != '\0' ? 1 : 0);
}

/// A name of more than two letters is a script's: PCRE2 would take it for the characters that the
/// script shares with others too.
Result<std::string> takeProperty(std::string_view &rest) {
  const std::string_view sign = rest.substr(0, 2);
  const size_t close = rest.find('}');
  if (!rest.substr(2).starts_with('{') || close == std::string_view::npos)
    return dataError(fmt::format("{} without a name in braces", sign));
  const std::string_view name = rest.substr(3, close - 3);
  rest.remove_prefix(close + 1);
  const bool isScript = name.size() > 2 && name.find_first_of(":=^") == std::string_view::npos &&
                        name != "Any" && name != "Alphabetic";
  return fmt::format("{}{{{}{}}}", sign, isScript ? "sc:" : "", name);
}

/// The contents of the class of all other characters, where `contents` is one property, a union of
/// general categories or `\S`; else nothing. What is looked at ahead of each character of a run
/// costs memory for each, a class does not.
std::optional<std::string> complementOf(std::string_view contents) {
  if (contents == noSpaces)
    return std::string(spaces);
  std::vector<std::string_view> names;
  for (std::string_view rest = contents; !rest.empty();) {
    const size_t close = rest.find('}');
    if (!rest.starts_with("\\p{") || close == std::string_view::npos)
      return std::nullopt;
    names.push_back(rest.substr(3, close - 3));
    rest.remove_prefix(close + 1);
  }
  if (names.size() == 1)
    return fmt::format("\\P{{{}}}", names.front());
  if (!std::ranges::all_of(names, isCategory))
    return std::nullopt;
  const auto isIn = [&](const std::string &name) {
    return std::ranges::find(names, name) != names.end();
  };
  std::string others;
  for (const std::string_view category : categories)
    for (const char part : category.substr(1))
      if (!isIn(std::string{category[0]}) && !isIn(std::string{category[0], part}))
        others += fmt::format("\\p{{{}{}}}", category[0], part);
  return others;
}

struct PosixClass {
  std::string_view name, contents;
};
/// Those that PCRE2 takes for less. It has the others as they are.
constexpr PosixClass posixClasses[] = {{"alpha", R"(\p{Alphabetic})"},
                                       {"alnum", R"(\p{Alphabetic}\p{Nd})"},
                                       {"upper", R"(\p{Uppercase})"},
                                       {"lower", R"(\p{Lowercase})"},
                                       {"space", spaces},
                                       {"word", wordCharacters}};

/// One character of a set: a class, or a group that matches it where PCRE2 has no such class.
struct CharacterSet {
  std::string contents;
  bool isNegated = false;
  std::string group = ""; ///< in place of the others where not empty

  std::string text() const {
    return !group.empty() ? group : fmt::format("[{}{}]", isNegated ? "^" : "", contents);
  }
  bool isPlain() const { return group.empty() && !isNegated; }
};

/// The length of the `[:name:]` or `[:^name:]` that `text` begins with; 0 where it is a class.
size_t posixLength(std::string_view text) {
  if (!text.starts_with("[:"))
    return 0;
  const size_t name = text.starts_with("[:^") ? 3 : 2;
  const size_t close = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz", name);
  return close != std::string_view::npos && close > name && text.substr(close).starts_with(":]")
             ? close + 2
             : 0;
}

/// Of `[:name:]` or `[:^name:]`.
CharacterSet posixClass(std::string_view text) {
  const bool isNegated = text.starts_with("[:^");
  const std::string_view name = text.substr(isNegated ? 3 : 2, text.size() - (isNegated ? 5 : 4));
  const auto known = std::ranges::find(posixClasses, name, &PosixClass::name);
  return known == std::end(posixClasses) ? CharacterSet{std::string(text)}
                                         : CharacterSet{std::string(known->contents), isNegated};
}

class ClassReader {
public:
  explicit ClassReader(std::string_view &rest) : rest(rest) {}

  Result<std::string> run() {
    const CharacterSet set = read(1);
    if (!wrong.empty())
      return dataError(std::move(wrong));
    return set.text();
  }

private:
  /// What stands before, for which a hyphen has a meaning.
  enum class Last { nothing, character, range, set };

  /// What is between two `&&`.
  struct Union {
    std::string contents;
    std::vector<CharacterSet> others; ///< what is no part of the contents
    Last last = Last::nothing;

    bool isEmpty() const { return contents.empty() && others.empty(); }

    CharacterSet set() const {
      if (others.empty())
        return {contents};
      if (contents.empty() && others.size() == 1)
        return others.front();
      std::string group = "(?:";
      if (!contents.empty())
        group += CharacterSet{contents}.text() + "|";
      for (const CharacterSet &other : others)
        group += other.text() + (&other == &others.back() ? ")" : "|");
      return {"", false, std::move(group)};
    }
  };

  bool isNext(std::string_view text) const { return rest.starts_with(text); }

  bool take(std::string_view text) {
    if (!isNext(text))
      return false;
    rest.remove_prefix(text.size());
    return true;
  }

  void refuse(std::string what) {
    if (wrong.empty())
      wrong = std::move(what);
  }

  CharacterSet read(int depth) {
    take("[");
    const bool isNegated = take("^");
    std::vector<CharacterSet> sets;
    Union now;
    if (take("]")) // a bracket that comes first is one
      addCharacter(now, "\\]");
    const auto finish = [&] {
      if (now.isEmpty())
        refuse("an intersection with nothing");
      sets.push_back(now.set());
      now = {};
    };
    while (wrong.empty() && !take("]"))
      if (take("&&"))
        finish();
      else
        readMember(now, depth);
    finish();
    CharacterSet all = intersection(sets);
    if (!isNegated)
      return all;
    if (all.group.empty())
      all.isNegated = !all.isNegated;
    else
      all.group = fmt::format("(?:(?!{})(?s:.))", all.group);
    return all;
  }

  void readMember(Union &now, int depth) {
    if (rest.empty())
      return refuse("a class without an end");
    if (const size_t length = posixLength(rest)) {
      addSet(now, posixClass(rest.substr(0, length)));
      rest.remove_prefix(length);
    } else if (isNext("[")) {
      if (depth == deepestClass)
        return refuse(fmt::format("classes in more than {} classes", deepestClass));
      addSet(now, read(depth + 1));
    } else if (isNext("\\")) {
      readEscape(now);
    } else if (take("-")) {
      readHyphen(now);
    } else {
      const size_t length = characterLength(rest);
      const bool isSign = std::string_view("^.:=").find(rest.front()) != std::string::npos;
      addCharacter(now, fmt::format("{}{}", isSign ? "\\" : "", rest.substr(0, length)));
      rest.remove_prefix(length);
    }
  }

  void readEscape(Union &now) {
    const char letter = rest.size() > 1 ? rest[1] : '\0';
    if (const std::string_view set = charactersOf(letter, true); !set.empty()) {
      if (letter == 'S' || letter == 'H')
        addSet(now, {std::string(letter == 'S' ? noSpaces : noHexDigits)});
      else
        addSet(now, {std::string(set), letter == 'W'});
      rest.remove_prefix(2);
      return;
    }
    const bool isSet = letter != '\0' && std::string_view("pPdD").find(letter) != std::string::npos;
    auto escape = takeEscape(rest);
    if (!escape)
      refuse(escape.error().message);
    else if (isSet)
      addSet(now, {*std::move(escape)});
    else
      addCharacter(now, *escape);
  }

  /// A hyphen between two characters makes a range of them, elsewhere it is one.
  void readHyphen(Union &now) {
    if (now.last != Last::character || isNext("]") || isNext("&&"))
      return addCharacter(now, "\\-");
    now.contents += '-';
    now.last = Last::range;
  }

  static void addCharacter(Union &now, std::string_view character) {
    now.contents += character;
    // Where a range ends, another hyphen is one.
    now.last = now.last == Last::range ? Last::set : Last::character;
  }

  void addSet(Union &now, const CharacterSet &set) {
    if (now.last == Last::range)
      refuse("a range that ends with a set");
    if (set.isPlain())
      now.contents += set.contents;
    else
      now.others.push_back(set);
    now.last = Last::set;
  }

  /// The contents of the class of what is not in all of the sets.
  static std::optional<std::string> outsideOf(const std::vector<CharacterSet> &sets) {
    std::string contents;
    for (const CharacterSet &set : sets) {
      const auto other = !set.group.empty() ? std::nullopt
                         : set.isNegated    ? std::optional(set.contents)
                                            : complementOf(set.contents);
      if (!other)
        return std::nullopt;
      contents += *other;
    }
    return contents;
  }

  /// Of two and more, all but one are looked at ahead where there is no class for them.
  static CharacterSet intersection(const std::vector<CharacterSet> &sets) {
    if (sets.size() == 1)
      return sets.front();
    if (const auto none = outsideOf(sets))
      return {*none, true};
    const auto plain = std::ranges::find_if(sets, &CharacterSet::isPlain);
    const CharacterSet &taken = plain == sets.end() ? sets.back() : *plain;
    std::string group = "(?:";
    for (const CharacterSet &set : sets)
      if (&set != &taken)
        group += set.group.empty() && set.isNegated ? fmt::format("(?![{}])", set.contents)
                                                    : fmt::format("(?={})", set.text());
    return {"", false, group + taken.text() + ")"};
  }

  std::string_view &rest;
  std::string wrong;
};

} // namespace

std::string_view charactersOf(char letter, bool isInClass) {
  switch (letter) {
  case 's':
  case 'S':
    return spaces;
  case 'w':
  case 'W':
    return isInClass ? wordCharacters : wordCharactersAlone;
  case 'h':
  case 'H':
    return hexDigits;
  default:
    return "";
  }
}

Result<std::string> takeEscape(std::string_view &rest) {
  const char letter = rest.size() > 1 ? rest[1] : '\0';
  if (letter == 'p' || letter == 'P')
    return takeProperty(rest);
  if (letter == 'u' && rest.size() >= 6 && isHexadecimal(rest.substr(2, 4), 4)) {
    std::string character = fmt::format("\\x{{{}}}", rest.substr(2, 4));
    rest.remove_prefix(6);
    return character;
  }
  if (letter == 'x' && rest.size() >= 4 && isHexadecimal(rest.substr(2, 2), 2) && rest[2] >= '8')
    return dataError(fmt::format("{}, a byte that is no character", rest.substr(0, 4)));
  if (letter == 'Q' || letter == 'E' || letter == 'V')
    return dataError(fmt::format("\\{}", letter));
  const size_t length = escapeLength(rest);
  std::string same(rest.substr(0, length));
  rest.remove_prefix(length);
  return letter == 'v' ? "\\x{b}" : same;
}

Result<std::string> takeClass(std::string_view &rest) { return ClassReader(rest).run(); }

} // namespace heddle
