#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_parser.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

const Token &ExpressionParser::peek(size_t ahead) const {
  return tokens[std::min(at + ahead, tokens.size() - 1)];
}

bool ExpressionParser::comes(std::string_view word, size_t ahead) const {
  const Token &token = peek(ahead);
  return (token.kind == Token::Kind::name || token.kind == Token::Kind::sign) && token.word == word;
}

bool ExpressionParser::take(std::string_view word) {
  const bool found = comes(word);
  if (found)
    skip();
  return found;
}

void ExpressionParser::expect(std::string_view word) {
  if (!take(word))
    fail(fmt::format("expected '{}', found {}", word, next()));
}

void ExpressionParser::expectTagEnd() {
  if (comes(Token::Kind::tagEnd))
    skip();
  else
    fail("expected the end of the tag, found " + next());
}

std::string ExpressionParser::name() {
  if (!comes(Token::Kind::name)) {
    fail("expected a name, found " + next());
    return {};
  }
  const std::string found(peek().word);
  skip();
  return found;
}

void ExpressionParser::failAt(size_t offset, std::string_view what) {
  if (!failure)
    failure = errorAt(offset, what);
  at = tokens.size() - 1;
}

std::string ExpressionParser::next() const {
  switch (peek().kind) {
  case Token::Kind::tagEnd:
    return "the end of the tag";
  case Token::Kind::finish:
    return "the end of the template";
  default:
    return inQuotes(peek().word.substr(0, 80));
  }
}

void ExpressionParser::enter(std::string_view what) {
  if (++depth > deepest)
    fail(fmt::format("{} are nested more than {} deep", what, deepest));
}

ExpressionPtr ExpressionParser::make(Kind kind, std::string text) {
  auto made = std::make_unique<Expression>();
  made->kind = kind;
  made->offset = offset();
  made->text = std::move(text);
  return made;
}

void ExpressionParser::adopt(Expression &parent, ExpressionPtr part) {
  grow(parent, part);
  parent.parts.push_back(std::move(part));
}

void ExpressionParser::grow(Expression &parent, const ExpressionPtr &part) {
  parent.height = std::max(parent.height, part ? part->height + 1 : 1);
  if (parent.height > highest)
    fail(fmt::format("an expression has more than {} parts above each other", highest));
}

ExpressionPtr ExpressionParser::expression(bool withCondition) {
  enter("expressions");
  ExpressionPtr value = disjunction();
  while (withCondition && take("if")) {
    ExpressionPtr made = make(Kind::conditional);
    adopt(*made, std::move(value));
    adopt(*made, disjunction());
    adopt(*made, take("else") ? expression() : nullptr);
    value = std::move(made);
  }
  leave();
  return value;
}

ExpressionPtr ExpressionParser::tuple(bool withCondition) {
  ExpressionPtr first = expression(withCondition);
  if (!comes(","))
    return first;
  ExpressionPtr made = make(Kind::tuple);
  adopt(*made, std::move(first));
  while (take(",") && !comes(Token::Kind::tagEnd) && !comes(")") && !comes("recursive"))
    adopt(*made, expression(withCondition));
  return made;
}

Target ExpressionParser::target(bool withNamespace) {
  Target first = oneTarget(withNamespace);
  if (!comes(","))
    return first;
  Target made;
  made.parts.push_back(std::move(first));
  while (take(",") && !comes("in") && !comes(Token::Kind::tagEnd) && !comes("=") && !comes(")"))
    made.parts.push_back(oneTarget(withNamespace));
  return made;
}

Target ExpressionParser::oneTarget(bool withNamespace) {
  enter("names");
  Target made;
  if (take("(")) {
    made = target(withNamespace);
    expect(")");
  } else {
    made.name = name();
    if (std::string word = made.name; word == "true" || word == "True" || word == "false" ||
                                      word == "False" || word == "none" || word == "None")
      fail(fmt::format("{} cannot be assigned to", inQuotes(word)));
    if (withNamespace && take("."))
      made.member = name();
  }
  leave();
  return made;
}

ExpressionPtr ExpressionParser::disjunction() {
  ExpressionPtr left = conjunction();
  while (take("or")) {
    ExpressionPtr made = make(Kind::either);
    adopt(*made, std::move(left));
    adopt(*made, conjunction());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::conjunction() {
  ExpressionPtr left = negation();
  while (take("and")) {
    ExpressionPtr made = make(Kind::both);
    adopt(*made, std::move(left));
    adopt(*made, negation());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::negation() {
  if (!comes("not"))
    return comparison();
  enter("expressions");
  ExpressionPtr made = make(Kind::inverse);
  skip();
  adopt(*made, negation());
  leave();
  return made;
}

std::optional<Operator> ExpressionParser::comparing() {
  constexpr Sign signs[] = {{"==", Operator::equal},  {"!=", Operator::notEqual},
                            {"<", Operator::less},    {"<=", Operator::lessEqual},
                            {">", Operator::greater}, {">=", Operator::greaterEqual},
                            {"in", Operator::in}};
  for (const Sign &sign : signs)
    if (take(sign.word))
      return sign.meaning;
  if (!comes("not") || !comes("in", 1))
    return std::nullopt;
  skip();
  skip();
  return Operator::notIn;
}

ExpressionPtr ExpressionParser::comparison() {
  ExpressionPtr left = sum();
  ExpressionPtr made;
  while (const auto sign = comparing()) {
    if (!made) {
      made = make(Kind::comparison);
      adopt(*made, std::move(left));
    }
    made->operators.push_back(*sign);
    adopt(*made, sum());
  }
  return made ? std::move(made) : std::move(left);
}

ExpressionPtr ExpressionParser::calculation(std::initializer_list<Sign> signs, Reader operand) {
  ExpressionPtr left = (this->*operand)();
  while (true) {
    const auto sign = std::ranges::find_if(signs, [&](const Sign &one) { return comes(one.word); });
    if (sign == signs.end())
      return left;
    ExpressionPtr made = make(Kind::calculation, sign->word);
    skip();
    made->operators = {sign->meaning};
    adopt(*made, std::move(left));
    adopt(*made, (this->*operand)());
    left = std::move(made);
  }
}

ExpressionPtr ExpressionParser::sum() {
  return calculation({{"+", Operator::add}, {"-", Operator::subtract}}, &ExpressionParser::joining);
}

ExpressionPtr ExpressionParser::joining() {
  ExpressionPtr left = product();
  while (take("~")) {
    ExpressionPtr made = make(Kind::join);
    adopt(*made, std::move(left));
    adopt(*made, product());
    left = std::move(made);
  }
  return left;
}

ExpressionPtr ExpressionParser::product() {
  return calculation({{"*", Operator::multiply},
                      {"/", Operator::divide},
                      {"//", Operator::floorDivide},
                      {"%", Operator::modulo}},
                     &ExpressionParser::power);
}

ExpressionPtr ExpressionParser::power() {
  return calculation({{"**", Operator::power}}, &ExpressionParser::filtered);
}

ExpressionPtr ExpressionParser::unary(bool withFilters) {
  enter("expressions");
  ExpressionPtr value;
  if (comes("-") || comes("+")) {
    value = make(comes("-") ? Kind::negative : Kind::positive);
    skip();
    adopt(*value, unary(false));
  } else {
    value = primary();
  }
  value = postfix(std::move(value));
  if (withFilters)
    value = filters(std::move(value), false);
  leave();
  return value;
}

ExpressionPtr ExpressionParser::postfix(ExpressionPtr value) {
  while (true) {
    if (comes(".") && peek(1).kind == Token::Kind::literal && peek(1).value.integer()) {
      skip();
      ExpressionPtr made = make(Kind::index);
      adopt(*made, std::move(value));
      adopt(*made, constant(peek().value));
      skip();
      value = std::move(made);
    } else if (take(".")) {
      ExpressionPtr made = make(Kind::attribute);
      made->text = name();
      adopt(*made, std::move(value));
      value = std::move(made);
    } else if (take("[")) {
      value = subscript(std::move(value));
    } else if (comes("(")) {
      ExpressionPtr made = make(Kind::call);
      adopt(*made, std::move(value));
      callArguments(*made);
      value = std::move(made);
    } else {
      return value;
    }
  }
}

ExpressionPtr ExpressionParser::filters(ExpressionPtr value, bool startsInline) {
  while (true) {
    if (startsInline || take("|")) {
      value = filter(std::move(value));
      startsInline = false;
    } else if (take("is")) {
      value = test(std::move(value));
    } else if (comes("(")) {
      ExpressionPtr made = make(Kind::call);
      adopt(*made, std::move(value));
      callArguments(*made);
      value = std::move(made);
    } else {
      return value;
    }
  }
}

std::string ExpressionParser::dottedName() {
  std::string found = name();
  while (take("."))
    found += "." + name();
  return found;
}

ExpressionPtr ExpressionParser::filter(ExpressionPtr value) {
  ExpressionPtr made = make(Kind::filter);
  made->text = dottedName();
  adopt(*made, std::move(value));
  if (comes("("))
    callArguments(*made);
  return made;
}

ExpressionPtr ExpressionParser::test(ExpressionPtr value) {
  const bool isNegated = take("not");
  ExpressionPtr made = make(Kind::test);
  made->text = dottedName();
  adopt(*made, std::move(value));
  const Token::Kind kind = peek().kind;
  if (comes("(")) {
    callArguments(*made);
  } else if (comes("is")) {
    fail("tests cannot follow each other");
  } else if ((kind == Token::Kind::name && !comes("else") && !comes("or") && !comes("and")) ||
             kind == Token::Kind::literal || comes("[") || comes("{")) {
    enter("expressions");
    adopt(*made, postfix(primary()));
    leave();
  }
  if (!isNegated)
    return made;
  ExpressionPtr inverse = make(Kind::inverse);
  adopt(*inverse, std::move(made));
  return inverse;
}

ExpressionPtr ExpressionParser::subscript(ExpressionPtr value) {
  ExpressionPtr made = make(Kind::index);
  adopt(*made, std::move(value));
  ExpressionPtr first = comes(":") ? nullptr : expression();
  if (!comes(":")) {
    adopt(*made, std::move(first));
    expect("]");
    return made;
  }
  made->kind = Kind::slice;
  adopt(*made, std::move(first));
  for (int part = 0; part < 2; ++part) {
    const bool isGiven = take(":") && !comes(":") && !comes("]");
    adopt(*made, isGiven ? expression() : nullptr);
  }
  expect("]");
  return made;
}

void ExpressionParser::callArguments(Expression &call) {
  expect("(");
  while (!failure && !take(")")) {
    if (call.spreadNamed)
      fail("an argument follows those of '**'");
    if (comes("*") || comes("**")) {
      ExpressionPtr &spread = comes("*") ? call.spread : call.spreadNamed;
      if (spread)
        fail("'*' is given twice in a call");
      skip();
      spread = expression();
      grow(call, spread);
    } else if (comes(Token::Kind::name) && comes("=", 1)) {
      const std::string key = name();
      skip();
      if (std::ranges::any_of(call.named, [&](const auto &one) { return one.first == key; }))
        fail(fmt::format("the argument {} is given twice", inQuotes(key)));
      if (call.named.size() >= mostNames)
        fail(fmt::format("a call has more than {} named arguments", mostNames));
      call.named.emplace_back(key, expression());
      grow(call, call.named.back().second);
    } else {
      if (!call.named.empty() || call.spread)
        fail("an argument without a name follows one with a name, or those of '*'");
      adopt(call, expression());
    }
    if (!comes(")"))
      expect(",");
  }
}

ExpressionPtr ExpressionParser::constant(Value value) {
  ExpressionPtr made = make(Kind::literal);
  made->value = std::move(value);
  return made;
}

ExpressionPtr ExpressionParser::primary() {
  if (comes(Token::Kind::literal)) {
    ExpressionPtr made = constant(peek().value);
    skip();
    if (!made->value.text() || !comes(Token::Kind::literal) || !peek().value.text())
      return made;
    std::string whole = *made->value.text(); // texts side by side are one
    for (; comes(Token::Kind::literal) && peek().value.text(); skip())
      whole += *peek().value.text();
    made->value = Value(std::move(whole));
    return made;
  }
  if (comes(Token::Kind::name)) {
    ExpressionPtr made = make(Kind::name, name());
    const std::string &word = made->text;
    if (word == "true" || word == "True" || word == "false" || word == "False")
      return constant(word[0] == 't' || word[0] == 'T');
    if (word == "none" || word == "None")
      return constant(nullptr);
    special.values = special.values || word == "varargs";
    special.named = special.named || word == "kwargs";
    special.caller = special.caller || word == "caller";
    return made;
  }
  if (take("(")) {
    ExpressionPtr made = comes(")") ? make(Kind::tuple) : tuple();
    expect(")");
    return made;
  }
  if (take("["))
    return list();
  if (take("{"))
    return dict();
  fail("expected a value, found " + next());
  return constant(nullptr);
}

ExpressionPtr ExpressionParser::list() {
  ExpressionPtr made = make(Kind::list);
  while (!failure && !take("]")) {
    adopt(*made, expression());
    if (!comes("]"))
      expect(",");
  }
  return made;
}

ExpressionPtr ExpressionParser::dict() {
  ExpressionPtr made = make(Kind::dict);
  while (!failure && !take("}")) {
    adopt(*made, expression());
    expect(":");
    adopt(*made, expression());
    if (!comes("}"))
      expect(",");
  }
  return made;
}

} // namespace heddle::jinja
