// The expressions inside of a template's tags.
#pragma once

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>

namespace heddle::jinja {

/// Expressions and blocks may be nested so deep.
inline constexpr int deepest = 100;
/// So many operators, filters and parts may follow each other: each stands above those before it.
inline constexpr int highest = 500;

inline bool isSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
inline bool isDigit(char c) { return c >= '0' && c <= '9'; }
inline bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Reads an expression. After a failure everything else reads as if the text had ended.
class ExpressionParser {
  using Kind = Expression::Kind;

public:
  ExpressionParser(std::string_view source, size_t begin, size_t end)
      : source(source), at(begin), end(end) {}

  std::optional<Error> failure;

  size_t offset() const { return at; }

  bool atEnd() {
    skipSpace();
    return failure || at >= end;
  }

  /// Takes `sign` if it comes next.
  bool take(std::string_view sign) {
    skipSpace();
    if (failure || !source.substr(at, end - at).starts_with(sign))
      return false;
    if (isNameStart(sign.front()) && at + sign.size() < end &&
        (isNameStart(source[at + sign.size()]) || isDigit(source[at + sign.size()])))
      return false;
    at += sign.size();
    return true;
  }

  void expect(std::string_view sign) {
    if (!take(sign))
      fail(fmt::format("expected '{}', found {}", sign, rest()));
  }

  void fail(std::string_view what) {
    if (!failure)
      failure = errorAt(at, what);
  }

  std::string rest() {
    skipSpace();
    return at >= end ? "the end of the tag"
                     : inQuotes(source.substr(at, std::min<size_t>(20, end - at)));
  }

  /// The next name, or nothing.
  std::string name() {
    skipSpace();
    const size_t start = at;
    if (!failure && at < end && isNameStart(source[at]))
      while (at < end && (isNameStart(source[at]) || isDigit(source[at])))
        ++at;
    return std::string(source.substr(start, at - start));
  }

  ExpressionPtr expression() {
    if (++depth > deepest)
      fail("expressions are nested too deep");
    ExpressionPtr value = failure ? literal(nullptr) : disjunction();
    if (!failure && take("if")) {
      ExpressionPtr condition = disjunction();
      ExpressionPtr other = take("else") ? expression() : nullptr;
      value = make(Kind::conditional, "", std::move(value), std::move(condition), std::move(other));
    }
    --depth;
    return value;
  }

  /// One or more expressions; several are a list.
  ExpressionPtr tuple() {
    ExpressionPtr first = expression();
    if (!take(","))
      return first;
    ExpressionPtr list = make(Kind::list, "", std::move(first));
    while (!atEnd() && !peek(")") && !peek("=")) {
      adopt(*list, expression());
      if (!take(","))
        break;
    }
    return list;
  }

  ExpressionPtr disjunction() {
    ExpressionPtr left = conjunction();
    while (take("or"))
      left = make(Kind::binary, "or", std::move(left), conjunction());
    return left;
  }

private:
  bool peek(std::string_view sign) {
    const size_t before = at;
    const bool found = take(sign);
    at = before;
    return found;
  }

  void skipSpace() {
    while (at < end && isSpace(source[at]))
      ++at;
  }

  ExpressionPtr literal(Value value) {
    ExpressionPtr made = make(Kind::literal, "");
    made->value = std::move(value);
    return made;
  }

  template <class... Parts>
  ExpressionPtr make(Kind kind, std::string text, Parts... parts) {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->offset = at;
    made->text = std::move(text);
    (adopt(*made, std::move(parts)), ...);
    return made;
  }

  void adopt(Expression &parent, ExpressionPtr part) {
    grow(parent, part);
    parent.parts.push_back(std::move(part));
  }

  void grow(Expression &parent, const ExpressionPtr &part) {
    parent.height = std::max(parent.height, part ? part->height + 1 : 1);
    if (parent.height > highest)
      fail("an expression is too long");
  }

  ExpressionPtr conjunction() {
    ExpressionPtr left = negation();
    while (take("and"))
      left = make(Kind::binary, "and", std::move(left), negation());
    return left;
  }

  ExpressionPtr negation() {
    if (!take("not"))
      return comparison();
    if (++depth > deepest)
      fail("expressions are nested too deep");
    ExpressionPtr value = make(Kind::unary, "not", negation());
    --depth;
    return value;
  }

  ExpressionPtr comparison() {
    ExpressionPtr left = sum();
    while (!failure) {
      std::string sign;
      for (const char *candidate : {"==", "!=", "<=", ">=", "<", ">", "in"})
        if (sign.empty() && take(candidate))
          sign = candidate;
      if (sign.empty() && take("not")) {
        expect("in");
        left = make(Kind::unary, "not", make(Kind::binary, "in", std::move(left), sum()));
        continue;
      }
      if (sign.empty())
        return left;
      left = make(Kind::binary, sign, std::move(left), sum());
    }
    return left;
  }

  ExpressionPtr sum() { return leftToRight({"+", "-", "~"}, &ExpressionParser::product); }
  ExpressionPtr product() { return leftToRight({"//", "*", "/", "%"}, &ExpressionParser::unary); }

  /// Operands joined by any of `signs`; of two with one beginning, the longer stands first.
  ExpressionPtr leftToRight(std::initializer_list<const char *> signs,
                            ExpressionPtr (ExpressionParser::*operand)()) {
    ExpressionPtr left = (this->*operand)();
    while (!failure) {
      const auto sign = std::ranges::find_if(signs, [&](const char *one) { return take(one); });
      if (sign == signs.end())
        return left;
      left = make(Kind::binary, *sign, std::move(left), (this->*operand)());
    }
    return left;
  }

  ExpressionPtr unary() {
    if (++depth > deepest)
      fail("expressions are nested too deep");
    ExpressionPtr value = take("-") ? make(Kind::unary, "-", unary()) : postfix(primary());
    --depth;
    return value;
  }

  ExpressionPtr postfix(ExpressionPtr value) {
    while (!failure) {
      if (take(".")) {
        const std::string member = name();
        if (member.empty())
          fail("expected a name after '.', found " + rest());
        value = make(Kind::attribute, member, std::move(value));
      } else if (take("[")) {
        value = subscript(std::move(value));
      } else if (take("(")) {
        value = make(Kind::call, "", std::move(value));
        arguments(*value);
      } else if (take("|")) {
        value = make(Kind::filter, name(), std::move(value));
        if (take("("))
          arguments(*value);
      } else if (take("is")) {
        value = test(std::move(value));
      } else {
        break;
      }
    }
    return value;
  }

  ExpressionPtr test(ExpressionPtr value) {
    const bool negated = take("not");
    ExpressionPtr made = make(Kind::test, name(), std::move(value));
    if (take("("))
      arguments(*made);
    else if (!atEnd() && (peek("'") || peek("\"") || isDigit(source[at])))
      adopt(*made, primary());
    return negated ? make(Kind::unary, "not", std::move(made)) : std::move(made);
  }

  ExpressionPtr subscript(ExpressionPtr value) {
    std::vector<ExpressionPtr> bounds(1);
    bool isSlice = false;
    while (!failure && !take("]")) {
      if (take(":")) {
        isSlice = true;
        bounds.emplace_back();
      } else {
        bounds.back() = expression();
      }
      if (bounds.size() > 3 || atEnd())
        fail("expected ']', found " + rest());
    }
    if (!isSlice)
      return make(Kind::index, "", std::move(value), std::move(bounds[0]));
    bounds.resize(3);
    return make(Kind::slice, "", std::move(value), std::move(bounds[0]), std::move(bounds[1]),
                std::move(bounds[2]));
  }

  void arguments(Expression &call) {
    while (!failure && !take(")")) {
      const size_t before = at;
      const std::string key = name();
      if (!key.empty() && !peek("==") && take("=")) {
        if (std::ranges::any_of(call.named, [&](const auto &one) { return one.first == key; }))
          fail(fmt::format("the argument {} is given twice", inQuotes(key)));
        call.named.emplace_back(key, expression());
        grow(call, call.named.back().second);
      } else {
        at = before;
        if (!call.named.empty())
          fail("an argument without a name follows one with a name");
        adopt(call, expression());
      }
      if (!take(",") && !peek(")"))
        fail("expected ',' or ')', found " + rest());
    }
  }

  ExpressionPtr primary() {
    skipSpace();
    if (failure || at >= end) {
      fail("expected a value, found the end of the tag");
      return literal(nullptr);
    }
    const char c = source[at];
    if (c == '\'' || c == '"')
      return literal(strings());
    if (isDigit(c))
      return number();
    if (take("(")) {
      ExpressionPtr value = peek(")") ? make(Kind::list, "") : tuple();
      expect(")");
      return value;
    }
    if (take("["))
      return list();
    if (take("{"))
      return dict();
    const std::string word = name();
    if (word.empty()) {
      fail("expected a value, found " + rest());
      return literal(nullptr);
    }
    if (word == "true" || word == "True" || word == "false" || word == "False")
      return literal(word[0] == 't' || word[0] == 'T');
    if (word == "none" || word == "None")
      return literal(nullptr);
    return make(Kind::name, word);
  }

  ExpressionPtr list() {
    ExpressionPtr made = make(Kind::list, "");
    while (!failure && !take("]")) {
      adopt(*made, expression());
      if (!take(",") && !peek("]"))
        fail("expected ',' or ']', found " + rest());
    }
    return made;
  }

  ExpressionPtr dict() {
    ExpressionPtr made = make(Kind::dict, "");
    while (!failure && !take("}")) {
      adopt(*made, expression());
      expect(":");
      adopt(*made, expression());
      if (!take(",") && !peek("}"))
        fail("expected ',' or '}', found " + rest());
    }
    return made;
  }

  ExpressionPtr number() {
    const size_t start = at;
    while (at < end && (isDigit(source[at]) || source[at] == '.'))
      ++at;
    const std::string_view digits = source.substr(start, at - start);
    if (digits.find('.') == std::string_view::npos) {
      int64_t value = 0;
      if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
        fail("a number is too large");
      return literal(value);
    }
    double value = 0;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc())
      fail("a number is malformed");
    return literal(value);
  }

  /// One or more strings side by side, which are one.
  std::string strings() {
    std::string text;
    while (at < end && (source[at] == '\'' || source[at] == '"')) {
      const char quote = source[at++];
      for (; at < end && source[at] != quote; ++at) {
        if (source[at] != '\\' || at + 1 >= end) {
          text += source[at];
          continue;
        }
        const char next = source[++at];
        constexpr std::string_view letters = "ntr\\'\"", meanings = "\n\t\r\\'\"";
        const size_t found = letters.find(next);
        if (found == std::string_view::npos)
          (text += '\\') += next;
        else
          text += meanings[found];
      }
      if (at >= end)
        fail("a string does not end");
      ++at;
      skipSpace();
    }
    return text;
  }

  std::string_view source;
  size_t at, end;
  int depth = 0;
};

} // namespace heddle::jinja
