// What a template was read as.
#pragma once

#include "frontend/tokenizers/jinja_value.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace heddle::jinja {

enum class Operator {
  add,
  subtract,
  multiply,
  divide,
  floorDivide,
  modulo,
  power,
  equal,
  notEqual,
  less,
  lessEqual,
  greater,
  greaterEqual,
  in,
  notIn,
};

/// Named arguments of a call, and parameters of a macro.
inline constexpr size_t mostNames = 500;

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    literal,
    name,
    list, ///< of `parts`
    tuple,
    dict,        ///< of `parts`, keys and values in turn
    attribute,   ///< `text` of parts[0]
    index,       ///< parts[1] of parts[0]
    slice,       ///< parts[0][parts[1] : parts[2] : parts[3]]; a part may be null
    negative,    ///< -parts[0]
    positive,    ///< +parts[0]
    inverse,     ///< not parts[0]
    either,      ///< parts[0] or parts[1]
    both,        ///< parts[0] and parts[1]
    join,        ///< parts[0] ~ parts[1]
    calculation, ///< operators[0] of parts[0] and parts[1]
    comparison,  ///< each of the operators stands between two of the parts
    conditional, ///< parts[1] ? parts[0] : parts[2], which may be null
    call,        ///< parts[0] with the others and `named`
    filter,      ///< `text` of parts[0]
    test,        ///< whether parts[0] is `text`
    body,        ///< the text of the block that a filter is applied to
  };

  Kind kind = Kind::literal;
  int height = 1;    ///< of the tree below, itself included
  size_t offset = 0; ///< in the template
  std::string text = {};
  Value value = {};
  std::vector<Operator> operators = {};
  std::vector<ExpressionPtr> parts = {};
  std::vector<std::pair<std::string, ExpressionPtr>> named = {};
  ExpressionPtr spread = {};      ///< whose members are arguments: *spread
  ExpressionPtr spreadNamed = {}; ///< whose entries are named arguments: **spreadNamed
};

/// What is assigned to: a name, a member of a namespace, or parts for each of the values.
struct Target {
  std::string name = {};
  std::string member = {};
  std::vector<Target> parts = {};
};

struct Statement;
using Body = std::vector<Statement>;

/// The parameters of a macro, and which of the names it uses that stand for all others.
struct Parameters {
  std::vector<std::string> names;
  std::vector<ExpressionPtr> defaults; ///< null where there is none
  bool takesValues = false;            ///< varargs
  bool takesNamed = false;             ///< kwargs
  bool takesCaller = false;
};

struct Statement {
  enum class Kind {
    text,
    output,
    loop,
    branch,
    assign,
    assignBody,
    macro,
    call,  ///< of a macro that is given the body
    apply, ///< a filter to the body
    scope, ///< names set within it are its own
    leave,
    next,
  };

  Kind kind = Kind::text;
  size_t offset = 0;
  std::string text = {};            ///< text; the name of a macro
  std::vector<Target> targets = {}; ///< of a loop or an assignment; of a scope, one for each value
  std::unique_ptr<Parameters> parameters = {}; ///< of a macro or a body that is given to one
  ExpressionPtr expression = {}; ///< what is put out, walked over, asked, assigned, applied
  ExpressionPtr condition = {};  ///< of a loop
  std::vector<ExpressionPtr> values = {}; ///< of a scope
  Body body = {};
  Body otherwise = {};
};

} // namespace heddle::jinja
