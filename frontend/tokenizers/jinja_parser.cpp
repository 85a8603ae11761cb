#include "frontend/tokenizers/jinja.h"

#include "frontend/tokenizers/jinja_expressions.h"

namespace heddle::jinja {

Error errorAt(size_t offset, std::string_view what) {
  return dataError(fmt::format("the chat template (offset {}): {}", offset, what));
}

namespace {

/// Divides the template into text and tags, and tags into statements.
class TemplateParser {
public:
  explicit TemplateParser(std::string_view source) : source(source) {}

  Result<Body> run() {
    Body body;
    const std::string end = statements(body);
    if (!failure && !end.empty())
      fail(at, fmt::format("'{}' ends nothing", end));
    if (failure)
      return *failure;
    return body;
  }

private:
  void fail(size_t offset, std::string_view what) {
    if (!failure)
      failure = errorAt(offset, what);
  }

  static bool isEnd(std::string_view word) {
    return word == "else" || word == "elif" || word.starts_with("end");
  }

  /// Reads statements until a tag that ends a body; answers with its first word, leaving `tag` at
  /// what follows it. Empty at the end of the template.
  std::string statements(Body &body) {
    if (++depth > deepest)
      fail(at, "blocks are nested too deep");
    std::string ended;
    while (!failure && ended.empty() && at < source.size()) {
      const size_t open = nextTag();
      text(body, open);
      if (open == std::string_view::npos)
        break;
      const char kind = source[open + 1];
      if (!closeTag(open, kind))
        break;
      if (kind == '{')
        output(body);
      else if (kind == '%')
        ended = statement(body);
    }
    --depth;
    return failure ? "" : ended;
  }

  size_t nextTag() const {
    for (size_t open = source.find('{', at); open != std::string_view::npos;
         open = source.find('{', open + 1))
      if (open + 1 < source.size() &&
          (source[open + 1] == '{' || source[open + 1] == '%' || source[open + 1] == '#'))
        return open;
    return std::string_view::npos;
  }

  /// The text before a tag, without what the tags around it trim.
  void text(Body &body, size_t open) {
    std::string_view text = source.substr(at, open == std::string_view::npos ? open : open - at);
    if (open == std::string_view::npos && text.ends_with('\n'))
      text.remove_suffix(1); // the end of the file
    const char sign =
        open != std::string_view::npos && open + 2 < source.size() ? source[open + 2] : ' ';
    if (trimsNext)
      while (!text.empty() && isSpace(text.front()))
        text.remove_prefix(1);
    else if (trimsLine && text.starts_with('\n'))
      text.remove_prefix(1);
    if (sign == '-') {
      while (!text.empty() && isSpace(text.back()))
        text.remove_suffix(1);
    } else if (open != std::string_view::npos && source[open + 1] != '{' && sign != '+') {
      // Spaces between the beginning of the line and a block.
      const size_t last = text.find_last_not_of(" \t");
      const bool fromLine = last == std::string_view::npos
                                ? open - text.size() == 0 || source[open - text.size() - 1] == '\n'
                                : text[last] == '\n';
      if (fromLine)
        text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    if (!text.empty())
      body.push_back({.kind = Statement::Kind::text, .offset = at, .text = std::string(text)});
  }

  /// Finds the end of the tag at `open`: `tagBegin` to `tagEnd` is what it holds.
  bool closeTag(size_t open, char kind) {
    const std::string_view close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    tagBegin = open + 2;
    if (tagBegin < source.size() && (source[tagBegin] == '-' || source[tagBegin] == '+'))
      ++tagBegin;
    size_t end = tagBegin;
    int braces = 0; // a dictionary may end with what ends a tag
    for (char quote = 0; end < source.size(); ++end) {
      const char c = source[end];
      if (quote && c == '\\' && kind != '#')
        ++end;
      else if (quote)
        quote = c == quote ? 0 : quote;
      else if (kind != '#' && (c == '\'' || c == '"'))
        quote = c;
      else if (kind != '#' && c == '{')
        ++braces;
      else if (c == '}' && braces > 0)
        --braces;
      else if (source.substr(end).starts_with(close))
        break;
    }
    if (end >= source.size()) {
      fail(open, fmt::format("a tag does not end: expected '{}'", close));
      return false;
    }
    at = end + 2;
    trimsNext = end > tagBegin && source[end - 1] == '-';
    trimsLine = kind != '{';
    tagEnd = trimsNext ? end - 1 : end;
    return true;
  }

  ExpressionParser tag() { return {source, tagBegin, tagEnd}; }

  /// What the tag holds from `parser` on must be used up.
  void finish(ExpressionParser &parser) {
    if (!parser.atEnd())
      parser.fail("expected the end of the tag, found " + parser.rest());
    if (parser.failure && !failure)
      failure = parser.failure;
  }

  void output(Body &body) {
    ExpressionParser parser = tag();
    Statement made{.kind = Statement::Kind::output, .offset = tagBegin};
    made.expression = parser.tuple();
    finish(parser);
    body.push_back(std::move(made));
  }

  /// Reads a block; answers with its word where it ends a body.
  std::string statement(Body &body) {
    ExpressionParser parser = tag();
    const std::string word = parser.name();
    if (isEnd(word)) {
      ending = parser;
      return word;
    }
    Statement made{.offset = tagBegin};
    if (word == "for")
      loop(parser, made);
    else if (word == "if")
      branch(parser, made);
    else if (word == "set")
      assign(parser, made);
    else if (word == "macro")
      define(parser, made);
    else if (word == "break" || word == "continue")
      made.kind = word == "break" ? Statement::Kind::leave : Statement::Kind::next;
    else if (word == "generation") { // marks what a model is trained on
      finish(parser);
      expectEnd(statements(body), "endgeneration");
      return "";
    } else
      parser.fail(fmt::format("the statement {} is not known here", inQuotes(word)));
    if (made.kind == Statement::Kind::leave || made.kind == Statement::Kind::next || parser.failure)
      finish(parser);
    body.push_back(std::move(made));
    return "";
  }

  void define(ExpressionParser &parser, Statement &made) {
    made.kind = Statement::Kind::macro;
    made.text = parser.name();
    parser.expect("(");
    while (!parser.failure && !parser.take(")")) {
      const std::string name = parser.name();
      if (name.empty())
        parser.fail("expected a parameter, found " + parser.rest());
      else if (std::ranges::find(made.targets, name) != made.targets.end())
        parser.fail(fmt::format("the parameter {} is named twice", inQuotes(name)));
      const bool follows = !made.defaults.empty() && made.defaults.back();
      made.targets.push_back(name);
      made.defaults.push_back(parser.take("=") ? parser.expression() : nullptr);
      if (follows && !made.defaults.back())
        parser.fail(fmt::format("the parameter {} has no default, but follows one that has",
                                inQuotes(name)));
      if (!parser.take(",")) {
        parser.expect(")");
        break;
      }
    }
    finish(parser);
    expectEnd(statements(made.body), "endmacro");
  }

  void expectEnd(const std::string &found, std::string_view wanted) {
    if (found != wanted)
      fail(at, fmt::format("expected '{}', found {}", wanted,
                           found.empty() ? "the end of the template" : inQuotes(found)));
  }

  void loop(ExpressionParser &parser, Statement &made) {
    made.kind = Statement::Kind::loop;
    do
      made.targets.push_back(parser.name());
    while (parser.take(","));
    parser.expect("in");
    made.expression = parser.disjunction();
    if (parser.take("if"))
      made.condition = parser.expression();
    finish(parser);
    std::string end = statements(made.body);
    if (end == "else")
      end = statements(made.otherwise);
    expectEnd(end, "endfor");
  }

  void branch(ExpressionParser &parser, Statement &made) {
    made.kind = Statement::Kind::branch;
    made.expression = parser.expression();
    finish(parser);
    std::string end = statements(made.body);
    if (end == "elif" && !failure) {
      Statement next{.offset = tagBegin};
      ExpressionParser rest = *ending;
      ++depth;            // which the body of the next is refused by
      branch(rest, next); // which reads the common end
      --depth;
      made.otherwise.push_back(std::move(next));
      return;
    }
    if (end == "else")
      end = statements(made.otherwise);
    expectEnd(end, "endif");
  }

  void assign(ExpressionParser &parser, Statement &made) {
    made.text = parser.name();
    if (parser.take("."))
      made.text += "." + parser.name();
    if (parser.take("=")) {
      made.kind = Statement::Kind::assign;
      made.expression = parser.tuple();
      finish(parser);
      return;
    }
    made.kind = Statement::Kind::assignBody;
    finish(parser);
    expectEnd(statements(made.body), "endset");
  }

  std::string_view source;
  size_t at = 0, tagBegin = 0, tagEnd = 0;
  bool trimsNext = false, trimsLine = false;
  int depth = 0;
  std::optional<ExpressionParser> ending;
  std::optional<Error> failure;
};

} // namespace

Result<Body> parse(std::string_view source) { return TemplateParser(source).run(); }

} // namespace heddle::jinja
