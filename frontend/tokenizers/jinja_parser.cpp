#include "frontend/tokenizers/jinja_parser.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

namespace {

using Kind = Statement::Kind;

/// The largest template; each of its bytes may be a word.
constexpr size_t mostSource = size_t{1} << 19;

bool hasName(const Target &target, std::string_view name) {
  return target.name == name ||
         std::ranges::any_of(target.parts, [&](const Target &part) { return hasName(part, name); });
}

class TemplateParser {
public:
  explicit TemplateParser(std::vector<Token> tokens) : parser(std::move(tokens)) {}

  Result<Body> run() {
    Body body = statements({});
    if (parser.failure)
      return *parser.failure;
    return body;
  }

private:
  using Words = std::initializer_list<std::string_view>;

  /// Statements up to a block that begins with one of `ends`, whose word comes next; without any,
  /// up to the end of the template.
  Body statements(Words ends) {
    parser.enter("blocks");
    Body body;
    while (!parser.failure) {
      const Token &token = parser.peek();
      if (token.kind == Token::Kind::finish) {
        if (ends.size() > 0)
          parser.fail(
              fmt::format("expected '{}', found the end of the template", *(ends.end() - 1)));
        break;
      }
      if (token.kind == Token::Kind::data)
        body.push_back({.offset = token.offset, .text = *token.value.text()});
      parser.skip();
      if (token.kind == Token::Kind::outputBegin) {
        Statement made{.kind = Kind::output, .offset = token.offset};
        made.expression = parser.tuple();
        parser.expectTagEnd();
        body.push_back(std::move(made));
      } else if (token.kind == Token::Kind::blockBegin) {
        if (std::ranges::any_of(ends, [&](std::string_view end) { return parser.comes(end); }))
          break;
        body.push_back(block(ends));
      }
    }
    parser.leave();
    return body;
  }

  /// The body of a block up to its end, which is taken.
  Body bodyUpTo(std::string_view end) {
    Body body = statements({end});
    parser.expect(end);
    parser.expectTagEnd();
    return body;
  }

  Statement block(Words ends) {
    const std::string word = parser.comes(Token::Kind::name) ? parser.name() : "";
    Statement made{.offset = parser.offset()};
    if (word.empty())
      parser.fail("expected a statement, found " + parser.next());
    else if (word == "for")
      loop(made);
    else if (word == "if")
      branch(made);
    else if (word == "set")
      assign(made);
    else if (word == "macro")
      macro(made);
    else if (word == "call")
      call(made);
    else if (word == "filter")
      apply(made);
    else if (word == "with")
      with(made);
    else if (word == "break" || word == "continue")
      jump(made, word);
    else if (word == "generation") // marks what a model is trained on
      scope(made);
    else if (word.starts_with("end") || word == "else" || word == "elif")
      parser.fail(ends.size() == 0
                      ? fmt::format("{} ends nothing", inQuotes(word))
                      : fmt::format("expected '{}', found {}", *(ends.end() - 1), inQuotes(word)));
    else
      parser.fail(fmt::format("the statement {} is not known here", inQuotes(word)));
    return made;
  }

  void loop(Statement &made) {
    made.kind = Kind::loop;
    made.targets.push_back(parser.target(false));
    if (hasName(made.targets[0], "loop"))
      parser.fail("'loop' cannot be the name of what a loop walks over");
    parser.expect("in");
    made.expression = parser.tuple(/*withCondition=*/false);
    if (parser.take("if"))
      made.condition = parser.expression();
    if (parser.comes("recursive"))
      parser.fail("recursive loops are not known here");
    parser.expectTagEnd();
    ++loops;
    made.body = statements({"else", "endfor"});
    --loops;
    if (parser.take("else")) {
      parser.expectTagEnd();
      made.otherwise = statements({"endfor"});
    }
    parser.expect("endfor");
    parser.expectTagEnd();
  }

  /// What follows "if" or "elif", up to the common end.
  void branch(Statement &made) {
    made.kind = Kind::branch;
    made.expression = parser.tuple(/*withCondition=*/false);
    parser.expectTagEnd();
    made.body = statements({"elif", "else", "endif"});
    if (parser.comes("elif")) {
      parser.enter("blocks");
      parser.skip();
      Statement next{.offset = parser.offset()};
      branch(next);
      made.otherwise.push_back(std::move(next));
      parser.leave();
      return;
    }
    if (parser.take("else")) {
      parser.expectTagEnd();
      made.otherwise = statements({"endif"});
    }
    parser.expect("endif");
    parser.expectTagEnd();
  }

  void assign(Statement &made) {
    made.targets.push_back(parser.target(true));
    if (parser.take("=")) {
      made.kind = Kind::assign;
      made.expression = parser.tuple();
      parser.expectTagEnd();
      return;
    }
    made.kind = Kind::assignBody;
    if (!made.targets[0].parts.empty())
      parser.fail("expected '=', found " + parser.next());
    made.expression = parser.filters(parser.make(Expression::Kind::body), false);
    parser.expectTagEnd();
    made.body = outsideOfLoops("endset");
  }

  /// A body that is not run where it stands, or whose text goes elsewhere.
  Body outsideOfLoops(std::string_view end) {
    const int before = std::exchange(loops, 0);
    Body body = bodyUpTo(end);
    loops = before;
    return body;
  }

  /// The body of a macro, and which special names it uses.
  void macroBody(Statement &made, std::string_view end) {
    const auto before = std::exchange(parser.special, {});
    made.body = outsideOfLoops(end);
    made.parameters->takesValues = parser.special.values;
    made.parameters->takesNamed = parser.special.named;
    made.parameters->takesCaller = parser.special.caller;
    parser.special = before;
  }

  void macro(Statement &made) {
    made.kind = Kind::macro;
    made.text = parser.name();
    signature(made);
    parser.expectTagEnd();
    macroBody(made, "endmacro");
  }

  void signature(Statement &made) {
    made.parameters = std::make_unique<Parameters>();
    Parameters &known = *made.parameters;
    parser.expect("(");
    while (!parser.failure && !parser.take(")")) {
      if (!known.names.empty())
        parser.expect(",");
      if (!parser.comes(Token::Kind::name))
        parser.fail("expected a parameter, found " + parser.next());
      const std::string name = parser.name();
      if (std::ranges::find(known.names, name) != known.names.end())
        parser.fail(fmt::format("the parameter {} is named twice", inQuotes(name)));
      if (known.names.size() >= mostNames)
        parser.fail(fmt::format("a macro has more than {} parameters", mostNames));
      const bool follows = !known.defaults.empty() && known.defaults.back();
      known.names.push_back(name);
      known.defaults.push_back(parser.take("=") ? parser.expression() : nullptr);
      if (follows && !known.defaults.back())
        parser.fail(fmt::format("the parameter {} has no default, but follows one that has",
                                inQuotes(name)));
    }
  }

  void call(Statement &made) {
    made.kind = Kind::call;
    if (parser.comes("("))
      signature(made);
    else
      made.parameters = std::make_unique<Parameters>();
    made.expression = parser.expression();
    if (!parser.failure && made.expression->kind != Expression::Kind::call)
      parser.fail("'call' needs the call of a macro");
    parser.expectTagEnd();
    macroBody(made, "endcall");
  }

  void apply(Statement &made) {
    made.kind = Kind::apply;
    made.expression = parser.filters(parser.make(Expression::Kind::body), true);
    parser.expectTagEnd();
    made.body = outsideOfLoops("endfilter");
  }

  void with(Statement &made) {
    made.kind = Kind::scope;
    while (!parser.failure && !parser.comes(Token::Kind::tagEnd)) {
      if (!made.targets.empty())
        parser.expect(",");
      made.targets.push_back(parser.target(false));
      parser.expect("=");
      made.values.push_back(parser.expression());
    }
    parser.expectTagEnd();
    made.body = bodyUpTo("endwith");
  }

  void scope(Statement &made) {
    made.kind = Kind::scope;
    parser.expectTagEnd();
    made.body = bodyUpTo("endgeneration");
  }

  void jump(Statement &made, const std::string &word) {
    made.kind = word == "break" ? Kind::leave : Kind::next;
    if (loops == 0)
      parser.fail(fmt::format("'{}' stands outside of a loop", word));
    parser.expectTagEnd();
  }

  ExpressionParser parser;
  int loops = 0; ///< around what is being read, in the same macro
};

/// Lines that end in "\n", without the last end of one.
std::string withPlainLines(std::string_view source) {
  std::string made;
  for (size_t i = 0; i < source.size(); ++i) {
    const bool isOfTwo = source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n';
    if (!isOfTwo)
      made += source[i] == '\r' ? '\n' : source[i];
  }
  if (made.ends_with('\n'))
    made.pop_back();
  return made;
}

} // namespace

Result<Body> parse(std::string_view source) {
  if (source.size() > mostSource)
    return dataError(fmt::format("the chat template has {} bytes; at most {} are read",
                                 source.size(), mostSource));
  const std::string plain = withPlainLines(replaceInvalidUtf8(source));
  auto tokens = tokenize(plain);
  if (!tokens)
    return tokens.error();
  return TemplateParser(*std::move(tokens)).run();
}

} // namespace heddle::jinja
