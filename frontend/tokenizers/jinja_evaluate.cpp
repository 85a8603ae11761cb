// The expressions of a template that is run.
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

Value Runner::evaluate(const Expression &expression) {
  meter.offset = expression.offset;
  if (depth >= deepestRun)
    meter.fail(
        fmt::format("runs more than {} statements and expressions within each other", deepestRun));
  if (!meter.step())
    return {};
  ++depth;
  Value value = compute(expression);
  --depth;
  meter.check(value);
  return meter.failure ? Value() : std::move(value);
}

Value Runner::compute(const Expression &expression) {
  using Kind = Expression::Kind;
  switch (expression.kind) {
  case Kind::literal:
    return expression.value;
  case Kind::name:
    return variable(expression.text);
  case Kind::list:
  case Kind::tuple:
    return list(expression);
  case Kind::dict:
    return dict(expression);
  case Kind::attribute:
    return attribute(expression);
  case Kind::index:
    return index(expression);
  case Kind::slice:
    return slice(expression);
  case Kind::negative:
  case Kind::positive:
    return sign(expression);
  case Kind::inverse:
    return !evaluate(*expression.parts[0]).isTrue();
  case Kind::either:
  case Kind::both: {
    Value left = evaluate(*expression.parts[0]);
    return left.isTrue() == (expression.kind == Kind::either) ? left
                                                              : evaluate(*expression.parts[1]);
  }
  case Kind::join:
    return join(expression);
  case Kind::calculation:
    return calculation(expression);
  case Kind::comparison:
    return comparison(expression);
  case Kind::conditional:
    return conditional(expression);
  case Kind::call:
    return call(expression, std::nullopt);
  case Kind::filter:
    return filtered(expression);
  case Kind::test:
    return tested(expression);
  case Kind::body:
    return captured;
  }
  return {};
}

Value Runner::list(const Expression &expression) {
  Members members;
  members.reserve(expression.parts.size());
  for (const ExpressionPtr &part : expression.parts)
    members.push_back(evaluate(*part));
  return expression.kind == Expression::Kind::list ? Value::list(std::move(members))
                                                   : Value::tuple(std::move(members));
}

Value Runner::dict(const Expression &expression) {
  Entries entries;
  std::map<Value, size_t, KeyOrder> places;
  for (size_t i = 0; i + 1 < expression.parts.size(); i += 2) {
    Value key = evaluate(*expression.parts[i]);
    Value value = evaluate(*expression.parts[i + 1]);
    meter.offset = expression.offset;
    meter.spend(key.width());
    if (!canBeKey(key))
      return meter.fail(fmt::format("{} as the key of a dictionary is not known here", key.kind()));
    const auto [place, isNew] = places.emplace(key, entries.size());
    if (isNew)
      entries.emplace_back(std::move(key), std::move(value));
    else
      entries[place->second].second = std::move(value);
  }
  return Value::dict(std::move(entries));
}

Value Runner::refuseUndefined(const Expression &expression) {
  using Kind = Expression::Kind;
  if (expression.kind == Kind::name)
    return meter.fail(fmt::format("{} is undefined", inQuotes(expression.text)));
  if (expression.kind == Kind::attribute)
    return meter.fail(fmt::format("the member {} is undefined", inQuotes(expression.text)));
  return meter.fail("something undefined is asked for its parts");
}

Value Runner::attribute(const Expression &expression) {
  const Value base = evaluate(*expression.parts[0]);
  meter.offset = expression.offset;
  if (base.isUndefined())
    return refuseUndefined(*expression.parts[0]);
  return member(base, expression.text);
}

Value Runner::member(const Value &base, const std::string &name) {
  meter.spend(static_cast<int64_t>(name.size() / 64));
  if (hasMethod(base, name))
    return Value::method(base, name);
  if (const Namespace *space = base.space()) {
    const Value *found = space->find(name);
    return found ? *found : Value();
  }
  if (const auto loop = base.loop())
    return memberOfLoop(loop, name);
  return elementOf(meter, base, Value(name));
}

Value Runner::memberOfLoop(const std::shared_ptr<Loop> &loop, const std::string &name) {
  const auto length = [&] {
    while (lookAhead(*loop))
      ;
    return loop->index + 1 + static_cast<int64_t>(loop->ahead.size());
  };
  if (name == "index" || name == "index0")
    return loop->index + (name == "index" ? 1 : 0);
  if (name == "length")
    return length();
  if (name == "revindex" || name == "revindex0")
    return length() - loop->index - (name == "revindex" ? 0 : 1);
  if (name == "first")
    return loop->index == 0;
  if (name == "last")
    return loop->ahead.empty() && !lookAhead(*loop);
  if (name == "previtem")
    return loop->previous;
  if (name == "nextitem")
    return !loop->ahead.empty() || lookAhead(*loop) ? loop->ahead.front() : Value();
  if (name == "depth" || name == "depth0")
    return name == "depth" ? 1 : 0;
  if (name == "cycle" || name == "changed")
    return Value::method(loop, name);
  return {};
}

Value Runner::index(const Expression &expression) {
  const Value base = evaluate(*expression.parts[0]);
  const Value key = evaluate(*expression.parts[1]);
  meter.offset = expression.offset;
  if (base.isUndefined())
    return refuseUndefined(*expression.parts[0]);
  if (base.loop() && key.text())
    return memberOfLoop(base.loop(), *key.text());
  return itemOf(meter, base, key);
}

Value Runner::slice(const Expression &expression) {
  const Value base = evaluate(*expression.parts[0]);
  Value bounds[3] = {nullptr, nullptr, nullptr};
  for (size_t i = 0; i < 3; ++i)
    if (expression.parts[i + 1])
      bounds[i] = evaluate(*expression.parts[i + 1]);
  meter.offset = expression.offset;
  if (base.isUndefined())
    return refuseUndefined(*expression.parts[0]);
  return jinja::slice(meter, base, bounds[0], bounds[1], bounds[2]);
}

Value Runner::sign(const Expression &expression) {
  const Value value = evaluate(*expression.parts[0]);
  meter.offset = expression.offset;
  if (!value.isNumber())
    return meter.fail(fmt::format("a sign stands before {}", value.kind()));
  return calculate(
      meter, expression.kind == Expression::Kind::negative ? Operator::subtract : Operator::add,
      value.isReal() ? Value(-0.0) : Value(0), value);
}

Value Runner::join(const Expression &expression) {
  const Value left = evaluate(*expression.parts[0]), right = evaluate(*expression.parts[1]);
  meter.offset = expression.offset;
  std::string text = textOf(meter, left);
  text += textOf(meter, right);
  return meter.fits(text.size()) ? Value(std::move(text)) : Value();
}

Value Runner::calculation(const Expression &expression) {
  const Value left = evaluate(*expression.parts[0]), right = evaluate(*expression.parts[1]);
  meter.offset = expression.offset;
  if (left.isUndefined() || right.isUndefined())
    return refuseUndefined(*expression.parts[left.isUndefined() ? 0 : 1]);
  return calculate(meter, expression.operators[0], left, right);
}

Value Runner::comparison(const Expression &expression) {
  Value left = evaluate(*expression.parts[0]);
  for (size_t i = 0; i < expression.operators.size(); ++i) {
    Value right = evaluate(*expression.parts[i + 1]);
    meter.offset = expression.offset;
    if (!holds(meter, expression.operators[i], left, right))
      return false;
    left = std::move(right);
  }
  return true;
}

Value Runner::conditional(const Expression &expression) {
  if (evaluate(*expression.parts[1]).isTrue())
    return evaluate(*expression.parts[0]);
  return expression.parts[2] ? evaluate(*expression.parts[2]) : Value();
}

Arguments Runner::argumentsOf(const Expression &expression) {
  Arguments arguments;
  for (size_t i = 1; i < expression.parts.size(); ++i)
    arguments.values.push_back(evaluate(*expression.parts[i]));
  for (const auto &[name, value] : expression.named) {
    meter.spend(static_cast<int64_t>(name.size() / 64));
    arguments.named.emplace_back(name, evaluate(*value));
  }
  if (expression.spread) {
    const Value list = evaluate(*expression.spread);
    const auto more = membersOf(meter, list);
    arguments.values.insert(arguments.values.end(), more->members.begin(), more->members.end());
  }
  if (expression.spreadNamed)
    spreadNames(evaluate(*expression.spreadNamed), arguments);
  return arguments;
}

void Runner::spreadNames(const Value &value, Arguments &arguments) {
  const Dict *dict = value.dict();
  if (!dict)
    return void(meter.fail(fmt::format("'**' stands before {}", value.kind())));
  if (arguments.named.size() + dict->entries.size() > mostNames)
    return void(meter.fail(fmt::format("a call has more than {} named arguments", mostNames)));
  for (const auto &[key, one] : dict->entries) {
    const std::string *name = key.text();
    if (!name)
      return void(meter.fail(fmt::format("{} is the name of an argument", key.kind())));
    meter.spend(key.width() + std::ssize(arguments.named) / 8);
    if (std::ranges::find(arguments.named, *name, &std::pair<std::string, Value>::first) !=
        arguments.named.end())
      return void(meter.fail(fmt::format("the argument {} is given twice", inQuotes(*name))));
    arguments.named.emplace_back(*name, one);
  }
}

Value Runner::filtered(const Expression &expression) {
  const Value subject = evaluate(*expression.parts[0]);
  Arguments arguments = argumentsOf(expression);
  meter.offset = expression.offset;
  return meter.failure ? Value() : filter(meter, expression.text, subject, std::move(arguments));
}

Value Runner::tested(const Expression &expression) {
  const Value subject = evaluate(*expression.parts[0]);
  const Arguments arguments = argumentsOf(expression);
  meter.offset = expression.offset;
  return meter.failure ? Value() : test(meter, expression.text, subject, arguments);
}

} // namespace heddle::jinja
