// What the values of templates can do: as Python and Jinja have it.
#pragma once

#include "frontend/tokenizers/jinja_meter.h"
#include "frontend/tokenizers/jinja_syntax.h"
#include "frontend/tokenizers/jinja_text.h"

#include <array>
#include <compare>
#include <span>

namespace heddle::jinja {

/// What was given to a function, filter or test.
struct Arguments {
  Members values;
  std::vector<std::pair<std::string, Value>> named;

  /// Takes the named argument `name` out.
  std::optional<Value> take(std::string_view name);
};

/// Arguments in the order of parameters.
struct Given {
  static constexpr size_t most = 4;
  std::array<Value, most> values;
  std::array<bool, most> isGiven{};

  const Value &operator[](size_t index) const { return values[index]; }
  bool has(size_t index) const { return isGiven[index]; }
  /// Whether the argument at `index` is given and true.
  bool isTrue(size_t index) const { return isGiven[index] && values[index].isTrue(); }
};

/// A filter, method or test: its parameters, of which the first `needed` must be given. One
/// without a name ("-") can only be given by its place.
struct Callable {
  std::string_view name;
  std::vector<std::string_view> parameters;
  size_t needed;
  Value (*run)(Meter &, const Value &subject, const Given &);
};

/// The arguments for the parameters of `callable`. `what` it is, in messages: "filter".
std::optional<Given> bindArguments(Meter &meter, const Arguments &arguments, const char *what,
                                   const Callable &callable);

Value filter(Meter &meter, const std::string &name, const Value &subject, Arguments arguments);
Value test(Meter &meter, const std::string &name, const Value &subject, const Arguments &arguments);
Value callMethod(Meter &meter, const Method &method, const Arguments &arguments);

/// Whether a value has a method of that name in Python, known here or not.
bool hasMethod(const Value &value, std::string_view name);

/// Whether `left` equals `right`.
bool isEqual(Meter &meter, const Value &left, const Value &right);
/// Which of two comes first; fails for what has no order.
std::partial_ordering compare(Meter &meter, const Value &left, const Value &right);
bool isLess(Meter &meter, const Value &left, const Value &right);
/// Whether `list`, a text, a list or a dictionary, holds `member`.
bool contains(Meter &meter, const Value &list, const Value &member);
Value calculate(Meter &meter, Operator sign, const Value &left, const Value &right);
bool holds(Meter &meter, Operator sign, const Value &left, const Value &right);
const char *spelling(Operator sign);

/// What a loop walks over: members, characters, keys. A generator is used up by it.
std::shared_ptr<Sequence> membersOf(Meter &meter, const Value &value);
/// A text without spaces, or without the characters of a text, at its sides.
Value strip(Meter &meter, const std::string &text, const Value &characters, Side side);

/// The value at an index or a key; undefined where there is none.
Value elementOf(Meter &meter, const Value &value, const Value &key);
/// The same, or a method, as Jinja's brackets and filters look for parts.
Value itemOf(Meter &meter, const Value &value, const Value &key);
Value slice(Meter &meter, const Value &value, const Value &begin, const Value &end,
            const Value &step);

/// As Python's str() and repr() write the value.
std::string textOf(Meter &meter, const Value &value);
std::string reprOf(Meter &meter, const Value &value);
/// As str() writes it, for work on each of its characters.
std::string charactersOf(Meter &meter, const Value &value);

struct JsonStyle {
  std::optional<std::string> indent; ///< of a level
  std::string comma, colon;
  bool sortsKeys = false, isAscii = false;
};
/// As Python's json.dumps() writes it.
std::string jsonOf(Meter &meter, const Value &value, const JsonStyle &style);

std::string describe(const std::string &name, const Value &value);

} // namespace heddle::jinja
