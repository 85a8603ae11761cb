#include "frontend/tokenizers/jinja_run.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja.h"

#include <fmt/format.h>

namespace heddle::jinja {

namespace {
constexpr size_t mostOutput = size_t{1} << 23;
constexpr std::pair<std::string_view, Function> functions[] = {
    {"raise_exception", Function::raiseException},
    {"strftime_now", Function::strftimeNow},
    {"range", Function::range},
    {"namespace", Function::makeNamespace},
    {"dict", Function::dict}};
} // namespace

class Runner::Within {
public:
  explicit Within(Runner &runner) : Within(runner, runner.scope) {}
  Within(Runner &runner, std::shared_ptr<Scope> around) : runner(runner), before(runner.scope) {
    runner.scope = std::make_shared<Scope>(std::move(around));
  }
  ~Within() {
    runner.scope->variables.clear();
    runner.scope = std::move(before);
  }
  Within(const Within &) = delete;
  Within &operator=(const Within &) = delete;

private:
  Runner &runner;
  std::shared_ptr<Scope> before;
};

Runner::Runner(std::map<std::string, Value> variables) : scope(std::make_shared<Scope>(nullptr)) {
  for (const auto &[name, function] : functions)
    scope->variables[name] = function;
  names.reserve(variables.size());
  for (auto &[name, value] : variables)
    scope->variables[names.emplace_back(name)] = std::move(value);
}

Result<std::string> Runner::run(const Body &body) {
  {
    const Within top(*this);
    execute(body);
  }
  if (meter.failure)
    return *meter.failure;
  return std::move(output);
}

Runner::Flow Runner::execute(const Body &body) {
  for (const Statement &statement : body) {
    meter.offset = statement.offset;
    if (depth >= deepestRun)
      meter.fail(fmt::format("runs more than {} statements and expressions within each other",
                             deepestRun));
    if (output.size() + suspended > mostOutput)
      meter.fail("makes more than 8 MB of text");
    if (!meter.step())
      return Flow::leave;
    ++depth;
    const Flow flow = execute(statement);
    --depth;
    if (flow != Flow::on)
      return flow;
  }
  return Flow::on;
}

Runner::Flow Runner::execute(const Statement &statement) {
  switch (statement.kind) {
  case Statement::Kind::text:
    meter.spend(static_cast<int64_t>(statement.text.size() / 64));
    output += statement.text;
    return Flow::on;
  case Statement::Kind::output:
    put(*statement.expression);
    return Flow::on;
  case Statement::Kind::loop:
    loop(statement);
    return Flow::on;
  case Statement::Kind::branch:
    return execute(evaluate(*statement.expression).isTrue() ? statement.body : statement.otherwise);
  case Statement::Kind::assign:
    assign(statement.targets[0], evaluate(*statement.expression), statement.offset);
    return Flow::on;
  case Statement::Kind::assignBody:
  case Statement::Kind::apply: {
    captured = textOfBody(statement.body);
    if (statement.kind == Statement::Kind::apply)
      putText(evaluate(*statement.expression), "the filter of a block");
    else
      assign(statement.targets[0], evaluate(*statement.expression), statement.offset);
    return Flow::on;
  }
  case Statement::Kind::macro:
    scope->variables[statement.text] = std::make_shared<const Macro>(statement, scope);
    return Flow::on;
  case Statement::Kind::call:
    callBlock(statement);
    return Flow::on;
  case Statement::Kind::scope:
    return scoped(statement);
  case Statement::Kind::leave:
    return Flow::leave;
  case Statement::Kind::next:
    return Flow::next;
  }
  return Flow::on;
}

void Runner::put(const Expression &expression) {
  const Value value = evaluate(expression);
  meter.offset = expression.offset;
  if (const std::string *text = value.text(); text && meter.spend(value.width()))
    output += *text;
  else
    output += textOf(meter, value);
}

void Runner::putText(const Value &value, std::string_view maker) {
  if (const std::string *text = value.text(); text && meter.spend(value.width()))
    output += *text;
  else
    meter.fail(fmt::format("{} makes {}, which is no text", maker, value.kind()));
}

Value Runner::textOfBody(const Body &body) {
  std::string before = std::exchange(output, {});
  suspended += before.size();
  {
    const Within block(*this);
    execute(body);
  }
  suspended -= before.size();
  return std::exchange(output, std::move(before));
}

Runner::Flow Runner::scoped(const Statement &statement) {
  Members values;
  for (const ExpressionPtr &value : statement.values)
    values.push_back(evaluate(*value));
  const Within block(*this);
  for (size_t i = 0; i < values.size(); ++i)
    assign(statement.targets[i], values[i], statement.offset);
  return execute(statement.body);
}

void Runner::assign(const Target &target, const Value &value, size_t offset) {
  meter.offset = offset;
  if (meter.failure)
    return;
  if (!target.parts.empty()) {
    const auto members = membersOf(meter, value);
    if (!meter.failure && members->members.size() != target.parts.size())
      meter.fail(fmt::format("{} names are assigned {} values", target.parts.size(),
                             members->members.size()));
    for (size_t i = 0; i < target.parts.size() && !meter.failure; ++i)
      assign(target.parts[i], members->members[i], offset);
  } else if (target.member.empty()) {
    meter.spend(static_cast<int64_t>(target.name.size() / 64));
    scope->variables[target.name] = value;
  } else if (Namespace *space = variable(target.name).space()) {
    space->set(target.member, value);
  } else {
    meter.fail(fmt::format("{} is no namespace to assign to", inQuotes(target.name)));
  }
}

/// Takes one more member that passes the condition out of the source.
bool Runner::lookAhead(Loop &loop) {
  if (!loop.statement)
    return false;
  const Statement &statement = *loop.statement;
  while (loop.taken < loop.source->members.size() && meter.step()) {
    const Value &member = loop.source->members[loop.taken++];
    if (statement.condition) {
      const Within own(*this, loop.scope);
      assign(statement.targets[0], member, statement.offset);
      if (!evaluate(*statement.condition).isTrue())
        continue;
    }
    loop.ahead.push_back(member);
    return !meter.failure;
  }
  return false;
}

void Runner::loop(const Statement &statement) {
  const Value list = evaluate(*statement.expression);
  meter.offset = statement.offset;
  const auto about = std::make_shared<Loop>(statement);
  about->scope = scope;
  about->source = membersOf(meter, list);
  bool isWhole = false; // Jinja's loops count what came to the end of their body
  while (!meter.failure && (!about->ahead.empty() || lookAhead(*about))) {
    about->previous = std::exchange(about->current, about->ahead.front());
    about->ahead.pop_front();
    ++about->index;
    const Within iteration(*this);
    scope->variables["loop"] = about;
    assign(statement.targets[0], about->current, statement.offset);
    const Flow flow = execute(statement.body);
    isWhole = isWhole || flow == Flow::on;
    if (flow == Flow::leave)
      break;
  }
  about->statement = nullptr;
  about->scope = nullptr;
  about->changed.reset();
  if (!isWhole && !meter.failure) {
    const Within otherwise(*this);
    execute(statement.otherwise);
  }
}

Value Runner::variable(std::string_view name) {
  for (const Scope *one = scope.get(); one; one = one->around.get()) {
    if (const auto found = one->variables.find(name); found != one->variables.end())
      return found->second;
    meter.spend(1 + static_cast<int64_t>(name.size() / 64));
  }
  return {};
}

Result<std::string> render(const Body &body, std::map<std::string, Value> variables) {
  return Runner(std::move(variables)).run(body);
}

} // namespace heddle::jinja
