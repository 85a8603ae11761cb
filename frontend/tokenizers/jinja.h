// The part of Jinja (https://jinja.palletsprojects.com/templates) that chat templates are written
// in. Blocks trim the line break after them and the spaces before them, as these templates expect.
#pragma once

#include "frontend/formats/json_reader.h"
#include "runtime/result.h"

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::jinja {

/// A value of the language; what is undefined is `discarded`. Dictionaries keep their order.
using Value = nlohmann::ordered_json;

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    literal,
    name,
    list,      ///< of `parts`
    dict,      ///< of `parts`, keys and values in turn
    attribute, ///< `text` of parts[0]
    index,     ///< parts[1] of parts[0]
    slice,     ///< parts[0][parts[1] : parts[2] : parts[3]]; a part may be null
    unary,     ///< operator `text`
    binary,
    conditional, ///< parts[1] ? parts[0] : parts[2], which may be null
    call,        ///< parts[0] with the others and `named`
    filter,      ///< `text` of parts[0]
    test,        ///< whether parts[0] is `text`
  };

  Kind kind = Kind::literal;
  int height = 1;    ///< of the tree below, itself included
  size_t offset = 0; ///< in the template
  std::string text = {};
  Value value = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
};

struct Statement;
using Body = std::vector<Statement>;

struct Statement {
  enum class Kind { text, output, loop, branch, assign, assignBody, macro, leave, next };

  Kind kind = Kind::text;
  size_t offset = 0;
  std::string text = {}; ///< text; the macro; what is assigned to, its member after a dot
  std::vector<std::string> targets = {};    ///< of a loop; the parameters of a macro
  std::vector<ExpressionPtr> defaults = {}; ///< of its parameters, where they have them
  ExpressionPtr expression = {};            ///< what is put out, walked over, asked or assigned
  ExpressionPtr condition = {};             ///< of a loop
  Body body = {};
  Body otherwise = {};
};

/// A template that was read. Errors (data) name the construct that is not known, and its offset.
Result<Body> parse(std::string_view source);

/// What the template makes of the variables. Errors (data): an operation that is not known or not
/// possible, what the template itself raises, more than a million steps.
Result<std::string> render(const Body &body, std::map<std::string, Value> variables);

/// An error at a place of a template.
Error errorAt(size_t offset, std::string_view what);

} // namespace heddle::jinja
