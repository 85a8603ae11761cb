#include "frontend/tokenizers/jinja_tokens.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_text.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace heddle::jinja {

Error errorAt(size_t offset, std::string_view what) {
  return dataError(fmt::format("the chat template (offset {}): {}", offset, what));
}

namespace {

constexpr size_t nowhere = std::string_view::npos;

bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isInName(char c) { return isNameStart(c) || isDigit(c); }
bool isSpace(char c) { return std::string_view(" \t\n\r\v\f").find(c) != nowhere; }

class Tokenizer {
public:
  explicit Tokenizer(std::string_view source) : source(source) {}

  Result<std::vector<Token>> run() {
    while (!failure && at < source.size()) {
      const size_t open = nextTag();
      data(at, open);
      if (open == nowhere)
        break;
      at = open + 2;
      if (at < source.size() && (source[at] == '-' || source[at] == '+'))
        ++at;
      if (source[open + 1] == '#')
        comment(open);
      else if (source[open + 1] != '%' || !raw(open))
        tag(open);
    }
    if (failure)
      return *failure;
    tokens.push_back({.offset = source.size()});
    return std::move(tokens);
  }

private:
  void fail(size_t offset, std::string_view what) {
    if (!failure)
      failure = errorAt(offset, what);
  }

  size_t nextTag() const {
    for (size_t open = source.find('{', at); open != nowhere; open = source.find('{', open + 1))
      if (open + 1 < source.size() && std::string_view("{%#").find(source[open + 1]) != nowhere)
        return open;
    return nowhere;
  }

  bool comesAt(size_t place, std::string_view sign) const {
    return place <= source.size() && source.substr(place).starts_with(sign);
  }

  /// What stands before the tag at `open`, without the spaces that the tag trims.
  void data(size_t begin, size_t open) {
    std::string_view text = source.substr(begin, open == nowhere ? open : open - begin);
    const char sign = open != nowhere && open + 2 < source.size() ? source[open + 2] : ' ';
    if (sign == '-') {
      text = stripped(text, std::nullopt, Side::right);
    } else if (open != nowhere && source[open + 1] != '{' && sign != '+') {
      // Spaces between the beginning of the line and a block.
      const size_t line = text.rfind('\n') + 1;
      const bool fromLine = line > 0 || begin == 0 || source[begin - 1] == '\n';
      if (fromLine && stripped(text.substr(line), std::nullopt, Side::right).empty())
        text = text.substr(0, line);
    }
    if (!text.empty())
      tokens.push_back({.kind = Token::Kind::data, .offset = begin, .value = Value(text)});
  }

  /// Whether the close of a tag or comment comes at `place`; goes on behind what it trims.
  bool close(size_t place, std::string_view sign, bool trimsLine = true) {
    size_t behind = place;
    if (comesAt(place, sign)) {
      behind += sign.size();
      if (trimsLine && comesAt(behind, "\n"))
        ++behind;
    } else if (comesAt(place, "-") && comesAt(place + 1, sign)) {
      behind += 1 + sign.size();
      behind = source.size() - stripped(source.substr(behind), std::nullopt, Side::left).size();
    } else if (sign != "}}" && comesAt(place, "+") && comesAt(place + 1, sign)) {
      behind += 1 + sign.size();
    } else {
      return false;
    }
    at = behind;
    return true;
  }

  void comment(size_t open) {
    for (size_t place = at; place < source.size(); ++place)
      if (close(place, "#}"))
        return;
    fail(open, "a comment does not end: expected '#}'");
  }

  size_t behindSpace(size_t place) const {
    while (place < source.size() && isSpace(source[place]))
      ++place;
    return place;
  }

  /// Takes a block of text that is put out as it is, if one begins at `open`.
  bool raw(size_t open) {
    const size_t word = behindSpace(at), before = at;
    if (!comesAt(word, "raw") || !close(behindSpace(word + 3), "%}", /*trimsLine=*/false))
      return false;
    if (source[at - 3] == '+') { // which does not begin such a block
      at = before;
      return false;
    }
    const size_t begin = at;
    for (size_t end = source.find("{%", at); end != nowhere; end = source.find("{%", end + 1)) {
      size_t place = end + 2;
      if (comesAt(place, "-") || comesAt(place, "+"))
        ++place;
      place = behindSpace(place);
      if (comesAt(place, "endraw") && close(behindSpace(place + 6), "%}")) {
        data(begin, end);
        return true;
      }
    }
    fail(open, "expected 'endraw', found the end of the template");
    return true;
  }

  void tag(size_t open) {
    const bool isOutput = source[open + 1] == '{';
    const std::string_view sign = isOutput ? "}}" : "%}";
    tokens.push_back(
        {.kind = isOutput ? Token::Kind::outputBegin : Token::Kind::blockBegin, .offset = open});
    brackets.clear();
    while (!failure) {
      at = behindSpace(at);
      const size_t start = at;
      if (at >= source.size())
        return fail(open, fmt::format("a tag does not end: expected '{}'", sign));
      if (brackets.empty() && close(at, sign, !isOutput)) {
        tokens.push_back({.kind = Token::Kind::tagEnd, .offset = start});
        return;
      }
      word();
    }
  }

  void word() {
    const size_t start = at;
    const char c = source[at];
    if (isNameStart(c)) {
      while (at < source.size() && isInName(source[at]))
        ++at;
      push(Token::Kind::name, start);
    } else if (isDigit(c)) {
      number();
    } else if (c == '\'' || c == '"') {
      string();
    } else {
      sign();
    }
  }

  void push(Token::Kind kind, size_t start, Value value = {}) {
    tokens.push_back({.kind = kind,
                      .offset = start,
                      .word = source.substr(start, at - start),
                      .value = std::move(value)});
  }

  void sign() {
    constexpr std::string_view longer[] = {"//", "**", "==", "!=", "<=", ">="};
    const size_t start = at;
    const char c = source[at];
    if (std::ranges::any_of(longer, [&](std::string_view sign) { return comesAt(at, sign); }))
      at += 2;
    else if (std::string_view("+-/*%~[](){}<>=.:|,;").find(c) != nowhere)
      ++at;
    else
      return fail(at, fmt::format("a tag holds {}",
                                  inQuotes(source.substr(at, characterLength(source.substr(at))))));
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (const size_t kind = opening.find(c); kind != nowhere)
      brackets += closing[kind];
    if (closing.find(c) != nowhere) {
      if (brackets.empty() || brackets.back() != c)
        return fail(start, brackets.empty()
                               ? fmt::format("'{}' closes nothing", c)
                               : fmt::format("expected '{}', found '{}'", brackets.back(), c));
      brackets.pop_back();
    }
    push(Token::Kind::sign, start);
  }

  /// Digits of a base, some of them divided by "_".
  std::string digits(std::string_view known) {
    std::string taken;
    for (; at < source.size(); ++at) {
      const bool divides =
          source[at] == '_' && at + 1 < source.size() && known.find(source[at + 1]) != nowhere;
      if (!divides && known.find(source[at]) == nowhere)
        break;
      if (!divides)
        taken += source[at];
    }
    return taken;
  }

  void number() {
    constexpr std::string_view decimal = "0123456789";
    const size_t start = at;
    for (const auto &[prefix, base, known] : {std::tuple("0x", 16, "0123456789abcdefABCDEF"),
                                              {"0X", 16, "0123456789abcdefABCDEF"},
                                              {"0o", 8, "01234567"},
                                              {"0O", 8, "01234567"},
                                              {"0b", 2, "01"},
                                              {"0B", 2, "01"}})
      if (comesAt(at, prefix)) {
        at += 2;
        return integer(start, digits(known), base);
      }
    std::string text = digits(decimal);
    const bool afterDot = start > 0 && source[start - 1] == '.';
    bool isReal = false;
    if (!afterDot && comesAt(at, ".") && at + 1 < source.size() && isDigit(source[at + 1])) {
      ++at;
      text += "." + digits(decimal);
      isReal = true;
    }
    if (!afterDot && (comesAt(at, "e") || comesAt(at, "E"))) {
      const bool hasSign = comesAt(at + 1, "+") || comesAt(at + 1, "-");
      const size_t first = at + (hasSign ? 2 : 1);
      if (first < source.size() && isDigit(source[first])) {
        text += "e" + std::string(source.substr(at + 1, hasSign && source[at + 1] == '-' ? 1 : 0));
        at = first;
        text += digits(decimal);
        isReal = true;
      }
    }
    if (!isReal)
      return integer(start, text, 10);
    double value = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc())
      fail(start, "a number is too large or too small");
    push(Token::Kind::literal, start, Value(value));
  }

  void integer(size_t start, const std::string &text, int base) {
    int64_t value = 0;
    if (base == 10 && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != nowhere)
      fail(start, "a number begins with 0");
    if (std::from_chars(text.data(), text.data() + text.size(), value, base).ec != std::errc())
      fail(start, text.empty() ? "a number has no digits" : "a number is too large");
    push(Token::Kind::literal, start, Value(value));
  }

  void string() {
    const size_t start = at;
    const char quote = source[at++];
    std::string text;
    while (at < source.size() && source[at] != quote) {
      if (source[at] == '\\' && at + 1 < source.size())
        escape(text);
      else
        text += source[at++];
    }
    if (at >= source.size())
      return fail(start, "a text does not end");
    ++at;
    push(Token::Kind::literal, start, Value(std::move(text)));
  }

  /// What Python makes of a backslash and what follows it.
  void escape(std::string &text) {
    const size_t start = at++;
    const char c = source[at++];
    constexpr std::string_view letters = "abfnrtv\\'\"", meanings = "\a\b\f\n\r\t\v\\'\"";
    if (c == '\n')
      return;
    if (const size_t found = letters.find(c); found != nowhere) {
      text += meanings[found];
    } else if (c >= '0' && c <= '7') {
      --at;
      codePoint(text, 1, 3, 8);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const size_t length = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      codePoint(text, length, length, 16);
    } else if (c == 'N') {
      fail(start, "characters by name are not known here");
    } else {
      (text += '\\') += c;
    }
  }

  void codePoint(std::string &text, size_t least, size_t most, int base) {
    uint32_t value = 0;
    const char *first = source.data() + at;
    const char *last = source.data() + std::min(source.size(), at + most);
    const auto [end, error] = std::from_chars(first, last, value, base);
    const auto length = static_cast<size_t>(end - first);
    if (error != std::errc() || length < least || value > 0x10ffff)
      return fail(at, "an escape in a text names no character");
    at += length;
    if (value >= 0xd800 && value < 0xe000)
      text += replacementCharacter;
    else
      appendCharacter(text, value);
  }

  std::string_view source;
  size_t at = 0;
  std::vector<Token> tokens;
  std::string brackets; ///< what must close those that are open
  std::optional<Error> failure;
};

} // namespace

Result<std::vector<Token>> tokenize(std::string_view source) { return Tokenizer(source).run(); }

} // namespace heddle::jinja
