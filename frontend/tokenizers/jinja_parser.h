// Reads the words of a template. After a failure all else reads as if the template had ended.
#pragma once

#include "frontend/tokenizers/jinja_syntax.h"
#include "frontend/tokenizers/jinja_tokens.h"

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::jinja {

/// Expressions and blocks may be nested so deep.
inline constexpr int deepest = 100;
/// So many operators, filters and parts may follow each other: each stands above those before it.
inline constexpr int highest = 500;

class ExpressionParser {
  using Kind = Expression::Kind;

public:
  explicit ExpressionParser(std::vector<Token> tokens) : tokens(std::move(tokens)) {}

  std::optional<Error> failure;
  int depth = 0; ///< of expressions and blocks that are being read

  /// Names used since this was cleared that are not ordinary ones in a macro.
  struct Special {
    bool values = false, named = false, caller = false;
  } special;

  const Token &peek(size_t ahead = 0) const;
  void skip() { at += at + 1 < tokens.size() ? 1 : 0; }
  size_t offset() const { return peek().offset; }
  bool comes(std::string_view word, size_t ahead = 0) const;
  bool comes(Token::Kind kind) const { return peek().kind == kind; }

  /// Takes the sign or name `word` if it comes next.
  bool take(std::string_view word);
  void expect(std::string_view word);
  void expectTagEnd();
  std::string name();

  void fail(std::string_view what) { failAt(offset(), what); }
  void failAt(size_t offset, std::string_view what);
  /// What comes next, for messages.
  std::string next() const;

  /// Counts one level more; fails where they are too many.
  void enter(std::string_view what);
  void leave() { --depth; }

  ExpressionPtr expression(bool withCondition = true);
  /// One expression, or several, which are a tuple.
  ExpressionPtr tuple(bool withCondition = true);
  /// Filters of what stands before, the first without its "|".
  ExpressionPtr filters(ExpressionPtr value, bool startsInline);
  /// One name, or several with commas between. Namespaces too if so wished.
  Target target(bool withNamespace);
  void callArguments(Expression &call);

  ExpressionPtr make(Kind kind, std::string text = {});
  void adopt(Expression &parent, ExpressionPtr part);

private:
  using Reader = ExpressionPtr (ExpressionParser::*)();
  struct Sign {
    const char *word;
    Operator meaning;
  };

  ExpressionPtr disjunction();
  ExpressionPtr conjunction();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr joining();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr filtered() { return unary(true); }
  ExpressionPtr unary(bool withFilters);
  ExpressionPtr calculation(std::initializer_list<Sign> signs, Reader operand);
  std::optional<Operator> comparing();
  ExpressionPtr postfix(ExpressionPtr value);
  ExpressionPtr filter(ExpressionPtr value);
  ExpressionPtr test(ExpressionPtr value);
  ExpressionPtr subscript(ExpressionPtr value);
  ExpressionPtr primary();
  ExpressionPtr constant(Value value);
  ExpressionPtr list();
  ExpressionPtr dict();
  std::string dottedName();
  Target oneTarget(bool withNamespace);
  void grow(Expression &parent, const ExpressionPtr &part);

  std::vector<Token> tokens;
  size_t at = 0;
};

} // namespace heddle::jinja
