// The functions and macros that a template calls.
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_run.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>

namespace heddle::jinja {

namespace {

constexpr int deepestCall = 200; ///< of macros within macros
/// As in Jinja's own sandbox.
constexpr int64_t longestRange = 100'000;

Value strftimeNow(Meter &meter, const std::string &format) {
  constexpr size_t mostBytes = 4096;
  constexpr int64_t cost = 500; // dates are slow to write
  if (!meter.spend(cost))
    return {};
  const std::time_t seconds = std::time(nullptr);
  std::tm date = {};
  localtime_r(&seconds, &date);
  std::string text(mostBytes, '\0');
  // One more character tells an empty text from one that is too long.
  const size_t length = format.size() < mostBytes
                            ? std::strftime(text.data(), text.size(), (format + ".").c_str(), &date)
                            : 0;
  if (length == 0)
    return meter.fail(fmt::format("writes a date in more than {} bytes", mostBytes));
  text.resize(length - 1);
  return replaceInvalidUtf8(text);
}

Value makeRange(Meter &meter, const Members &given) {
  int64_t bounds[3] = {0, 0, 1};
  if (given.empty() || given.size() > 3)
    return meter.fail("'range' takes one to three numbers");
  for (size_t i = 0; i < given.size(); ++i) {
    if (!given[i].integer())
      return meter.fail(fmt::format("'range' takes numbers, not {}", given[i].kind()));
    bounds[given.size() == 1 ? 1 : i] = *given[i].integer();
  }
  const auto [begin, end, step] = bounds;
  if (step == 0)
    return meter.fail("a range has the step 0");
  __int128 count = 0;
  if (step > 0 ? begin < end : begin > end)
    count = (static_cast<__int128>(end) - begin + step + (step > 0 ? -1 : 1)) / step;
  if (count > longestRange)
    return meter.fail(fmt::format("a range has more than {} members", longestRange));
  Members members;
  members.reserve(static_cast<size_t>(count));
  meter.spend(static_cast<int64_t>(count));
  for (int64_t i = 0; i < static_cast<int64_t>(count); ++i)
    members.emplace_back(begin + i * step);
  return std::make_shared<Sequence>(Sequence::Kind::range, std::move(members));
}

/// What Python's dict() makes of a dictionary or pairs, and of named arguments.
std::optional<Entries> entriesOf(Meter &meter, const Arguments &given) {
  Entries entries;
  std::map<Value, size_t, KeyOrder> places;
  const auto add = [&](const Value &key, const Value &value) {
    meter.spend(key.width());
    if (!canBeKey(key))
      return void(
          meter.fail(fmt::format("{} as the key of a dictionary is not known here", key.kind())));
    const auto [place, isNew] = places.emplace(key, entries.size());
    if (isNew)
      entries.emplace_back(key, value);
    else
      entries[place->second].second = value;
  };
  if (given.values.size() > 1)
    meter.fail("a dictionary is made of one value and of names");
  else if (!given.values.empty() && given.values[0].isUndefined())
    meter.fail("a dictionary is made of something undefined");
  else if (!given.values.empty() && given.values[0].dict()) {
    meter.spend(given.values[0].width());
    for (const auto &[key, value] : given.values[0].dict()->entries)
      add(key, value);
  } else if (!given.values.empty()) {
    for (const auto all = membersOf(meter, given.values[0]); const Value &pair : all->members) {
      const auto parts = membersOf(meter, pair);
      if (parts->members.size() != 2) {
        meter.fail("a dictionary is made of values that are no pairs");
        break;
      }
      add(parts->members[0], parts->members[1]);
    }
  }
  for (const auto &[name, value] : given.named)
    add(name, value);
  if (meter.failure)
    return std::nullopt;
  return entries;
}

} // namespace

Value Runner::call(const Expression &expression, std::optional<Value> caller) {
  const Expression &callee = *expression.parts[0];
  const Value called = evaluate(callee);
  Arguments arguments = argumentsOf(expression);
  if (caller && arguments.take("caller"))
    meter.fail("the argument 'caller' is given twice");
  if (caller)
    arguments.named.emplace_back("caller", *std::move(caller));
  meter.offset = expression.offset;
  if (meter.failure)
    return {};
  if (const Macro *macro = called.macro())
    return callMacro(*macro, std::move(arguments));
  if (const auto function = called.function())
    return callFunction(*function, std::move(arguments));
  if (const Method *method = called.method()) {
    if (const auto loop = method->receiver.loop())
      return callLoop(*loop, method->name, arguments);
    return callMethod(meter, *method, arguments);
  }
  if (called.loop())
    return meter.fail("recursive loops are not known here");
  if (called.isUndefined() && callee.kind == Expression::Kind::name)
    return meter.fail(fmt::format("the function {} is not known here", inQuotes(callee.text)));
  if (called.isUndefined() && callee.kind == Expression::Kind::attribute)
    return meter.fail(fmt::format("the method {} is not known here", inQuotes(callee.text)));
  return meter.fail(fmt::format("{} is called", called.kind()));
}

void Runner::callBlock(const Statement &statement) {
  const Value caller = std::make_shared<const Macro>(statement, scope);
  ++depth;
  const Value value = call(*statement.expression, caller);
  --depth;
  putText(value, "what is called for a block");
}

Value Runner::callFunction(Function function, Arguments arguments) {
  const Members &given = arguments.values;
  if (function == Function::makeNamespace)
    return makeNamespace(arguments);
  if (function == Function::dict) {
    auto entries = entriesOf(meter, arguments);
    return entries ? Value::dict(*std::move(entries)) : Value();
  }
  if (!arguments.named.empty())
    return meter.fail(
        fmt::format("a function has no argument {}", inQuotes(arguments.named[0].first)));
  if (function == Function::range)
    return makeRange(meter, given);
  if (given.size() != 1)
    return meter.fail("a function takes one argument");
  if (function == Function::raiseException)
    return meter.fail("refuses the conversation: " + printable(textOf(meter, given[0])));
  if (!given[0].text())
    return meter.fail(fmt::format("'strftime_now' takes a text, not {}", given[0].kind()));
  return strftimeNow(meter, *given[0].text());
}

Value Runner::makeNamespace(const Arguments &arguments) {
  const auto entries = entriesOf(meter, arguments);
  if (!entries)
    return {};
  namespaces.push_back(std::make_unique<Namespace>());
  for (const auto &[key, value] : *entries) {
    if (!key.text())
      return meter.fail("a namespace has names, not " + std::string(key.kind()));
    namespaces.back()->set(*key.text(), value);
  }
  return namespaces.back().get();
}

/// The text that a macro makes. It sees its arguments and what is around its definition.
Value Runner::callMacro(const Macro &macro, Arguments arguments) {
  const std::string name = macro.statement.kind == Statement::Kind::macro
                               ? "the macro " + inQuotes(macro.statement.text)
                               : "'caller'";
  if (calls >= deepestCall)
    return meter.fail(fmt::format("calls macros more than {} deep, last {}", deepestCall, name));
  std::string before = std::exchange(output, {});
  suspended += before.size();
  auto around = std::make_shared<Scope>(macro.scope);
  std::swap(scope, around);
  ++calls;
  bindParameters(macro, arguments);
  if (!meter.failure)
    execute(macro.statement.body);
  --calls;
  std::swap(scope, around);
  around->variables.clear();
  suspended -= before.size();
  return std::exchange(output, std::move(before));
}

/// What is given first, so that a default sees the parameters but nothing of the same name that
/// is set around. What is given stays, even if it is undefined.
void Runner::bindParameters(const Macro &macro, Arguments &arguments) {
  const Parameters &known = *macro.statement.parameters;
  const auto refuse = [&](const std::string &what) {
    meter.fail(macro.statement.text.empty()
                   ? "'caller' " + what
                   : fmt::format("the macro {} {}", inQuotes(macro.statement.text), what));
  };
  std::map<std::string_view, Value> &variables = scope->variables;
  meter.spend(std::ssize(known.names) * (1 + std::ssize(arguments.named) / 8));
  std::vector<const Expression *> defaults;
  for (size_t i = 0; i < known.names.size(); ++i) {
    const std::string &name = known.names[i];
    auto named = arguments.take(name);
    if (named && i < arguments.values.size())
      refuse(fmt::format("is given {} twice", inQuotes(name)));
    const bool isGiven = named || i < arguments.values.size();
    variables[name] = named                         ? *std::move(named)
                      : i < arguments.values.size() ? arguments.values[i]
                                                    : Value();
    defaults.push_back(isGiven ? nullptr : known.defaults[i].get());
  }
  const size_t taken = std::min(known.names.size(), arguments.values.size());
  if (known.takesValues)
    variables["varargs"] =
        Value::tuple({arguments.values.begin() + std::ptrdiff_t(taken), arguments.values.end()});
  else if (taken < arguments.values.size())
    refuse(fmt::format("takes fewer arguments: {}", known.names.size()));
  if (known.takesCaller)
    variables["caller"] = arguments.take("caller").value_or(Value());
  if (known.takesNamed) {
    Entries entries;
    for (const auto &[name, value] : arguments.named)
      entries.emplace_back(name, value);
    variables["kwargs"] = Value::dict(std::move(entries));
  } else if (!arguments.named.empty()) {
    refuse("has no parameter " + inQuotes(arguments.named[0].first));
  }
  for (size_t i = 0; i < defaults.size() && !meter.failure; ++i)
    if (defaults[i]) {
      Value value = evaluate(*defaults[i]);
      variables[known.names[i]] = std::move(value);
    }
}

Value Runner::callLoop(Loop &loop, const std::string &name, const Arguments &arguments) {
  if (!arguments.named.empty())
    return meter.fail(fmt::format("'loop.{}' takes no names", name));
  if (name == "cycle") {
    if (arguments.values.empty())
      return meter.fail("'loop.cycle' takes at least one value");
    return arguments
        .values[static_cast<size_t>(std::max<int64_t>(loop.index, 0)) % arguments.values.size()];
  }
  Value asked = Value::tuple(arguments.values);
  if (loop.changed && isEqual(meter, *loop.changed, asked))
    return false;
  if (loop.statement)
    loop.changed = std::move(asked);
  return true;
}

} // namespace heddle::jinja
