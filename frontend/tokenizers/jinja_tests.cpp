// What can be asked of a value with "is".
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_functions.h"
#include "frontend/tokenizers/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

namespace {

Value isUndefined(Meter &, const Value &value, const Given &) { return value.isUndefined(); }
Value isDefined(Meter &, const Value &value, const Given &) { return !value.isUndefined(); }
Value isNone(Meter &, const Value &value, const Given &) { return value.isNone(); }
Value isText(Meter &, const Value &value, const Given &) { return value.text() != nullptr; }
Value isMapping(Meter &, const Value &value, const Given &) { return value.dict() != nullptr; }
Value isNumber(Meter &, const Value &value, const Given &) { return value.isNumber(); }
Value isReal(Meter &, const Value &value, const Given &) { return value.isReal(); }
Value isBoolean(Meter &, const Value &value, const Given &) { return value.isBoolean(); }
/// What is undefined counts, as in Jinja: it can be called, which fails.
Value isCallable(Meter &, const Value &value, const Given &) {
  return value.isCallable() || value.isUndefined();
}

Value isInteger(Meter &, const Value &value, const Given &) {
  return value.integer() && !value.isBoolean();
}

Value isSequence(Meter &, const Value &value, const Given &) {
  const Sequence *list = value.sequence();
  return value.text() || value.dict() || value.isUndefined() || (list && list->isIndexed());
}

Value isIterable(Meter &, const Value &value, const Given &) {
  return value.text() || value.dict() || value.isUndefined() || value.sequence() || value.loop();
}

Value isTrue(Meter &, const Value &value, const Given &) {
  return value.isBoolean() && value.isTrue();
}
Value isFalse(Meter &, const Value &value, const Given &) {
  return value.isBoolean() && !value.isTrue();
}

Value isRest(Meter &meter, const Value &value, const Value &by, int64_t rest) {
  return isEqual(meter, calculate(meter, Operator::modulo, value, by), rest);
}

Value isOdd(Meter &meter, const Value &value, const Given &) { return isRest(meter, value, 2, 1); }
Value isEven(Meter &meter, const Value &value, const Given &) { return isRest(meter, value, 2, 0); }
Value isDivisible(Meter &meter, const Value &value, const Given &given) {
  return isRest(meter, value, given[0], 0);
}

Value isLowerText(Meter &meter, const Value &value, const Given &) {
  return isAllLower(charactersOf(meter, value));
}
Value isUpperText(Meter &meter, const Value &value, const Given &) {
  return isAllUpper(charactersOf(meter, value));
}

Value isSame(Meter &, const Value &value, const Given &given) {
  return value.isSameThing(given[0]);
}

template <Operator sign>
Value compares(Meter &meter, const Value &value, const Given &given) {
  return holds(meter, sign, value, given[0]);
}

const std::vector<Callable> tests = {
    {"defined", {}, 0, isDefined},
    {"undefined", {}, 0, isUndefined},
    {"none", {}, 0, isNone},
    {"string", {}, 0, isText},
    {"mapping", {}, 0, isMapping},
    {"sequence", {}, 0, isSequence},
    {"iterable", {}, 0, isIterable},
    {"number", {}, 0, isNumber},
    {"integer", {}, 0, isInteger},
    {"float", {}, 0, isReal},
    {"boolean", {}, 0, isBoolean},
    {"callable", {}, 0, isCallable},
    {"true", {}, 0, isTrue},
    {"false", {}, 0, isFalse},
    {"odd", {}, 0, isOdd},
    {"even", {}, 0, isEven},
    {"divisibleby", {"num"}, 1, isDivisible},
    {"lower", {}, 0, isLowerText},
    {"upper", {}, 0, isUpperText},
    {"sameas", {"other"}, 1, isSame},
    {"in", {"seq"}, 1, compares<Operator::in>},
    {"equalto", {"-"}, 1, compares<Operator::equal>},
    {"eq", {"-"}, 1, compares<Operator::equal>},
    {"==", {"-"}, 1, compares<Operator::equal>},
    {"ne", {"-"}, 1, compares<Operator::notEqual>},
    {"!=", {"-"}, 1, compares<Operator::notEqual>},
    {"lt", {"-"}, 1, compares<Operator::less>},
    {"<", {"-"}, 1, compares<Operator::less>},
    {"lessthan", {"-"}, 1, compares<Operator::less>},
    {"le", {"-"}, 1, compares<Operator::lessEqual>},
    {"<=", {"-"}, 1, compares<Operator::lessEqual>},
    {"gt", {"-"}, 1, compares<Operator::greater>},
    {">", {"-"}, 1, compares<Operator::greater>},
    {"greaterthan", {"-"}, 1, compares<Operator::greater>},
    {"ge", {"-"}, 1, compares<Operator::greaterEqual>},
    {">=", {"-"}, 1, compares<Operator::greaterEqual>},
};

} // namespace

Value test(Meter &meter, const std::string &name, const Value &subject,
           const Arguments &arguments) {
  const auto found = std::ranges::find(tests, name, &Callable::name);
  if (found == tests.end())
    return meter.fail(fmt::format("the test {} is not known here", inQuotes(name)));
  const auto given = bindArguments(meter, arguments, "test", *found);
  return given && !meter.failure ? found->run(meter, subject, *given) : Value();
}

} // namespace heddle::jinja
