// Runs templates.
#pragma once

#include "frontend/tokenizers/jinja_functions.h"

#include <deque>
#include <map>
#include <memory>
#include <string_view>

namespace heddle::jinja {

constexpr int deepestRun = 4000; ///< of statements and expressions within each other

/// Names that are set, and the scope around. It is emptied when its block ends, so that the macros
/// in it do not keep it alive.
struct Scope : Counted {
  explicit Scope(std::shared_ptr<Scope> around)
      : Counted(sizeof(Scope)), around(std::move(around)) {}
  std::shared_ptr<Scope> around;
  std::map<std::string_view, Value> variables;
};

struct Macro : Counted {
  Macro(const Statement &statement, std::shared_ptr<Scope> scope)
      : Counted(sizeof(Macro)), statement(statement), scope(std::move(scope)) {}
  const Statement &statement;
  std::shared_ptr<Scope> scope; ///< where it was defined
};

/// A loop under way: what a template knows as `loop`.
struct Loop : Counted {
  explicit Loop(const Statement &statement) : Counted(sizeof(Loop)), statement(&statement) {}
  const Statement *statement; ///< null when it has ended
  std::shared_ptr<Scope> scope;
  std::shared_ptr<Sequence> source;
  size_t taken = 0;        ///< of the source
  std::deque<Value> ahead; ///< taken, but not yet reached
  int64_t index = -1;
  Value previous, current;
  std::optional<Value> changed; ///< what `changed` was last asked for
};

class Runner {
public:
  explicit Runner(std::map<std::string, Value> variables);

  Result<std::string> run(const Body &body);

private:
  enum class Flow { on, leave, next };

  /// A scope within the present one, for as long as this lives.
  class Within;

  Flow execute(const Body &body);
  Flow execute(const Statement &statement);
  Flow scoped(const Statement &statement);
  void put(const Expression &expression);
  /// Puts out what must be a text, as `maker` makes it.
  void putText(const Value &value, std::string_view maker);
  void loop(const Statement &statement);
  bool lookAhead(Loop &loop);
  void assign(const Target &target, const Value &value, size_t offset);
  void callBlock(const Statement &statement);
  /// The text that a body puts out.
  Value textOfBody(const Body &body);

  Value evaluate(const Expression &expression);
  Value compute(const Expression &expression);
  Value list(const Expression &expression);
  Value dict(const Expression &expression);
  Value attribute(const Expression &expression);
  Value member(const Value &base, const std::string &name);
  Value memberOfLoop(const std::shared_ptr<Loop> &loop, const std::string &name);
  Value index(const Expression &expression);
  Value slice(const Expression &expression);
  Value sign(const Expression &expression);
  Value join(const Expression &expression);
  Value calculation(const Expression &expression);
  Value comparison(const Expression &expression);
  Value conditional(const Expression &expression);
  Value call(const Expression &expression, std::optional<Value> caller);
  Value filtered(const Expression &expression);
  Value tested(const Expression &expression);
  Arguments argumentsOf(const Expression &expression);
  /// Adds the entries of a dictionary to the named arguments.
  void spreadNames(const Value &value, Arguments &arguments);

  Value callFunction(Function function, Arguments arguments);
  Value callMacro(const Macro &macro, Arguments arguments);
  void bindParameters(const Macro &macro, Arguments &arguments);
  Value callLoop(Loop &loop, const std::string &name, const Arguments &arguments);
  Value makeNamespace(const Arguments &arguments);

  Value variable(std::string_view name);
  /// Refuses what is undefined, by what it was called.
  Value refuseUndefined(const Expression &expression);

  Meter meter;
  std::shared_ptr<Scope> scope;
  std::vector<std::unique_ptr<Namespace>> namespaces;
  std::vector<std::string> names; ///< of the variables at the beginning
  std::string output;
  size_t suspended = 0; ///< bytes of the texts around `output`
  Value captured;       ///< the text of a block that a filter is applied to
  int calls = 0;        ///< of macros, that are under way
  int depth = 0;        ///< of statements and expressions, that are under way
};

} // namespace heddle::jinja
