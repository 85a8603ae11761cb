// What the values of templates can do.
#pragma once

#include "frontend/tokenizers/jinja.h"

#include <optional>

namespace heddle::jinja {

inline Value undefined() { return Value(Value::value_t::discarded); }

/// The largest `sizeOf` of a value, and the longest text, in bytes, that a template may make.
inline constexpr int64_t mostSize = int64_t{1} << 21;
inline constexpr size_t longestText = size_t{1} << 24;

/// The parts of a value at all depths, and every 64 bytes of text; more than `mostSize` where a
/// text is too long or the value is nested too deep.
int64_t sizeOf(const Value &value, int depth = 0);

bool isTrue(const Value &value);

/// The value as Python's str() writes it. Errors: a list or dictionary.
Result<std::string> textOf(const Value &value);

/// The value as JSON, spaced as Python does it; on lines of their own where `indent` is not
/// negative.
std::string jsonOf(const Value &value, int indent, int depth = 0);

/// What was given to a function, filter or test.
struct Arguments {
  std::vector<Value> values;
  std::map<std::string, Value> named;

  /// The argument at `index`, or of that name; else undefined.
  Value get(size_t index, const char *name) const;
};

/// `left sign right`, for all operators but `and` and `or`. Nothing where the operator does not
/// apply to such values.
std::optional<Value> operate(const std::string &sign, const Value &left, const Value &right);

/// Nothing where there is no such filter, method or test for such values.
std::optional<Value> filter(const std::string &name, const Value &value, const Arguments &given);
std::optional<Value> method(const std::string &name, const Value &value, const Arguments &given);
std::optional<bool> test(const std::string &name, const Value &value, const Arguments &given);

} // namespace heddle::jinja
