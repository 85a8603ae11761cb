#include "frontend/tokenizers/jinja_values.h"

#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle::jinja {

int64_t sizeOf(const Value &value, int depth) {
  constexpr int deepest = 100;
  if (value.is_string()) {
    const size_t length = value.get_ref<const std::string &>().size();
    return length > longestText ? mostSize + 1 : 1 + static_cast<int64_t>(length / 64);
  }
  if (depth > deepest)
    return mostSize + 1;
  int64_t size = 1;
  if (value.is_structured())
    for (const Value &part : value)
      if ((size += sizeOf(part, depth + 1)) > mostSize)
        break;
  return size;
}

bool isTrue(const Value &value) {
  if (value.is_boolean())
    return value.get<bool>();
  if (value.is_number())
    return value != 0;
  if (value.is_string())
    return !value.get_ref<const std::string &>().empty();
  return value.is_structured() && !value.empty();
}

Result<std::string> textOf(const Value &value) {
  if (value.is_string())
    return value.get<std::string>();
  if (value.is_discarded())
    return std::string();
  if (value.is_null())
    return std::string("None");
  if (value.is_boolean())
    return std::string(value.get<bool>() ? "True" : "False");
  if (value.is_number())
    return value.dump();
  return dataError(fmt::format("{} is put out as text, which is not known here (tojson is)",
                               value.is_array() ? "a list" : "a dictionary"));
}

std::string jsonOf(const Value &value, int indent, int depth) {
  if (!value.is_structured())
    return value.is_discarded() ? "null"
                                : value.dump(-1, ' ', false, Value::error_handler_t::replace);
  std::string text(1, value.is_array() ? '[' : '{');
  const auto newLine = [&](int level) {
    if (indent >= 0 && !value.empty())
      text += "\n" + std::string(static_cast<size_t>(indent * level), ' ');
  };
  bool first = true;
  for (const auto &[key, member] : value.items()) {
    if (!first)
      text += indent >= 0 ? "," : ", ";
    first = false;
    newLine(depth + 1);
    if (value.is_object())
      text += jsonOf(Value(key), indent, depth) + ": ";
    text += jsonOf(member, indent, depth + 1);
  }
  newLine(depth);
  return text + (value.is_array() ? ']' : '}');
}

Value Arguments::get(size_t index, const char *name) const {
  if (index < values.size())
    return values[index];
  const auto found = named.find(name);
  return found == named.end() ? undefined() : found->second;
}

namespace {

bool isText(const Value &value) { return value.is_string(); }
const std::string &text(const Value &value) { return value.get_ref<const std::string &>(); }
bool isInteger(const Value &value) { return value.is_number_integer(); }

std::optional<Value> arithmetic(const std::string &sign, const Value &left, const Value &right) {
  if (!left.is_number() || !right.is_number())
    return std::nullopt;
  if (!isInteger(left) || !isInteger(right) || sign == "/") {
    const double a = left.get<double>(), b = right.get<double>();
    if (sign == "+" || sign == "-" || sign == "*")
      return Value(sign == "+" ? a + b : sign == "-" ? a - b : a * b);
    return sign == "/" && b != 0 ? std::optional(Value(a / b)) : std::nullopt;
  }
  const auto a = left.get<int64_t>(), b = right.get<int64_t>();
  int64_t result = 0;
  if (sign == "+")
    return __builtin_add_overflow(a, b, &result) ? std::nullopt : std::optional(Value(result));
  if (sign == "-")
    return __builtin_sub_overflow(a, b, &result) ? std::nullopt : std::optional(Value(result));
  if (sign == "*")
    return __builtin_mul_overflow(a, b, &result) ? std::nullopt : std::optional(Value(result));
  if ((sign != "%" && sign != "//") || b == 0 || b == -1)
    return std::nullopt;
  // Towards minus infinity, as Python does.
  const bool below = a % b != 0 && (a < 0) != (b < 0);
  return Value(sign == "%" ? a % b + (below ? b : 0) : a / b - (below ? 1 : 0));
}

std::optional<Value> contains(const Value &left, const Value &right) {
  if (right.is_discarded()) // what is undefined is empty
    return Value(false);
  if (isText(right) && isText(left))
    return Value(text(right).find(text(left)) != std::string::npos);
  if (right.is_array())
    return Value(std::ranges::find(right, left) != right.end());
  if (right.is_object() && isText(left))
    return Value(right.contains(text(left)));
  return std::nullopt;
}

std::string stripped(std::string_view text, std::string_view characters, bool left, bool right) {
  const auto isCut = [&](char c) { return characters.find(c) != std::string_view::npos; };
  while (left && !text.empty() && isCut(text.front()))
    text.remove_prefix(1);
  while (right && !text.empty() && isCut(text.back()))
    text.remove_suffix(1);
  return std::string(text);
}

std::string mapped(std::string text, bool upper) {
  for (char &c : text)
    if (upper ? c >= 'a' && c <= 'z' : c >= 'A' && c <= 'Z')
      c = static_cast<char>(c ^ 0x20);
  return text;
}

std::string replacedAll(std::string text, const std::string &what, const std::string &with) {
  for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos;
       at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

Value split(const std::string &text, const Value &separator) {
  Value parts = Value::array();
  if (!isText(separator)) { // at white space
    for (size_t at = 0; (at = text.find_first_not_of(" \t\r\n", at)) != std::string::npos;) {
      const size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
      parts.push_back(text.substr(at, end - at));
      at = end;
    }
    return parts;
  }
  const std::string &sign = separator.get_ref<const std::string &>();
  for (size_t at = 0, end = 0; !sign.empty() && end != std::string::npos; at = end + sign.size()) {
    end = text.find(sign, at);
    parts.push_back(text.substr(at, end == std::string::npos ? end : end - at));
  }
  return parts;
}

int64_t lengthOf(const Value &value) {
  if (!isText(value))
    return static_cast<int64_t>(value.size());
  int64_t count = 0;
  for (std::string_view rest = text(value); !rest.empty();
       rest.remove_prefix(characterLength(rest)))
    ++count;
  return count;
}

Value itemsOf(const Value &value) {
  Value items = Value::array();
  for (const auto &[key, member] : value.items())
    items.push_back(Value::array({key, member}));
  return items;
}

/// Those members that pass a test, or fail it: themselves, or by an attribute of theirs.
std::optional<Value> select(const Value &list, const Arguments &given, bool wanted,
                            bool byAttribute) {
  const Value attribute = byAttribute ? given.get(0, "attribute") : undefined();
  const Value name = given.get(byAttribute ? 1 : 0, "test");
  if (!list.is_array() || isText(attribute) != byAttribute)
    return std::nullopt;
  Arguments rest;
  const ptrdiff_t taken = byAttribute ? 2 : 1;
  rest.values.assign(given.values.begin() + std::min(taken, std::ssize(given.values)),
                     given.values.end());
  Value kept = Value::array();
  for (const Value &member : list) {
    const Value value = !byAttribute         ? member
                        : member.is_object() ? member.value(text(attribute), undefined())
                                             : undefined();
    const auto passes = isText(name) ? test(text(name), value, rest) : isTrue(value);
    if (!passes)
      return std::nullopt;
    if (*passes == wanted)
      kept.push_back(member);
  }
  return kept;
}

/// An attribute of each member, or what a filter makes of each.
std::optional<Value> mapList(const Value &list, const Arguments &given) {
  const Value attribute = given.get(1, "attribute"), name = given.get(0, "");
  Arguments rest;
  if (isText(name))
    rest.values.assign(given.values.begin() + 1, given.values.end());
  else if (!isText(attribute))
    return std::nullopt;
  Value result = Value::array();
  for (const Value &member : list) {
    auto made = isText(name)         ? filter(text(name), member, rest)
                : member.is_object() ? std::optional(member.value(text(attribute), undefined()))
                                     : std::optional(undefined());
    if (!made)
      return std::nullopt;
    result.push_back(*std::move(made));
  }
  return result;
}

/// In order: numbers by value, texts without regard to case.
std::optional<Value> sorted(const Value &list, const Arguments &given) {
  const bool areTexts = std::ranges::all_of(list, isText);
  const bool areNumbers =
      std::ranges::all_of(list, [](const Value &member) { return member.is_number(); });
  if (!given.values.empty() || !given.named.empty() || !(areTexts || areNumbers))
    return std::nullopt;
  // What compares alike stays in its order.
  std::vector<std::pair<Value, size_t>> order;
  for (const Value &member : list)
    order.emplace_back(areTexts ? Value(mapped(text(member), false)) : member, order.size());
  std::ranges::sort(order);
  Value result = Value::array();
  for (const auto &[key, index] : order)
    result.push_back(list[index]);
  return result;
}

std::optional<Value> filterList(const std::string &name, const Value &value,
                                const Arguments &given) {
  if (name == "first" || name == "last")
    return value.empty() ? undefined() : name == "first" ? value.front() : value.back();
  if (name == "list")
    return value;
  if (name == "selectattr" || name == "rejectattr")
    return select(value, given, name == "selectattr", /*byAttribute=*/true);
  if (name == "select" || name == "reject")
    return select(value, given, name == "select", /*byAttribute=*/false);
  if (name == "map")
    return mapList(value, given);
  if (name == "sort")
    return sorted(value, given);
  if (name == "reverse") {
    Value result = Value::array();
    for (auto member = value.rbegin(); member != value.rend(); ++member)
      result.push_back(*member);
    return result;
  }
  if (name != "join")
    return std::nullopt;
  const Value separator = given.get(0, "d");
  std::string joined;
  for (const Value &member : value) {
    const auto part = textOf(member);
    if (!part)
      return std::nullopt;
    if (isText(separator) && &member != &value.front())
      joined += text(separator);
    joined += *part;
  }
  return joined;
}

std::optional<Value> filterText(const std::string &name, const std::string &value,
                                const Arguments &given) {
  if (name == "trim")
    return stripped(value, " \t\r\n", true, true);
  if (name == "upper" || name == "lower")
    return mapped(value, name == "upper");
  if (name == "capitalize")
    return value.empty() ? Value(value)
                         : Value(mapped(value.substr(0, 1), true) + mapped(value.substr(1), false));
  if (name == "replace") {
    const Value what = given.get(0, "old"), with = given.get(1, "new");
    if (isText(what) && isText(with))
      return replacedAll(value, text(what), text(with));
  }
  return std::nullopt;
}

} // namespace

std::optional<Value> operate(const std::string &sign, const Value &left, const Value &right) {
  if (sign == "==" || sign == "!=") {
    const bool same = left.is_discarded() || right.is_discarded()
                          ? left.is_discarded() && right.is_discarded()
                          : left == right;
    return Value(same == (sign == "=="));
  }
  if (sign == "in")
    return contains(left, right);
  if (sign == "~") {
    const auto one = textOf(left), other = textOf(right);
    return one && other ? std::optional(Value(*one + *other)) : std::nullopt;
  }
  if (sign == "+" && isText(left) && isText(right))
    return Value(text(left) + text(right));
  if (sign == "+" && left.is_array() && right.is_array()) {
    Value both = left;
    both.insert(both.end(), right.begin(), right.end());
    return both;
  }
  if (sign[0] == '<' || sign[0] == '>') {
    if (!(left.is_number() && right.is_number()) && !(isText(left) && isText(right)))
      return std::nullopt;
    return Value(sign == "<"    ? left < right
                 : sign == ">"  ? left > right
                 : sign == "<=" ? left <= right
                                : left >= right);
  }
  return arithmetic(sign, left, right);
}

std::optional<Value> filter(const std::string &name, const Value &value, const Arguments &given) {
  if (name == "safe" || name == "string") {
    const auto written = textOf(value);
    return written ? std::optional(Value(*written)) : std::nullopt;
  }
  if (name == "default" || name == "d") {
    const bool replaces =
        value.is_discarded() || (isTrue(given.get(1, "boolean")) && !isTrue(value));
    return replaces ? given.get(0, "default_value") : value;
  }
  if (name == "tojson") {
    const Value indent = given.get(0, "indent");
    return jsonOf(value, isInteger(indent) ? std::clamp<int>(indent.get<int>(), 0, 16) : -1);
  }
  if (value.is_discarded()) { // an empty list, or an empty text
    const Value list = Value::array();
    if (auto made = name == "length" || name == "count" ? std::optional(Value(0))
                    : name == "int"                     ? std::optional(Value(0))
                                                        : filterList(name, list, given))
      return made;
    return filterText(name, "", given);
  }
  if (name == "length" || name == "count")
    return isText(value) || value.is_structured() ? std::optional(Value(lengthOf(value)))
                                                  : std::nullopt;
  if (name == "items" && value.is_object())
    return itemsOf(value);
  if (name == "int" && value.is_number())
    return Value(static_cast<int64_t>(std::clamp(value.get<double>(), -9e15, 9e15)));
  if (isText(value))
    return filterText(name, text(value), given);
  return value.is_array() ? filterList(name, value, given) : std::nullopt;
}

std::optional<Value> method(const std::string &name, const Value &value, const Arguments &given) {
  if (value.is_object()) {
    if (name == "items")
      return itemsOf(value);
    if (name == "get" && isText(given.get(0, "key"))) {
      const Value otherwise = given.get(1, "default");
      return value.value(text(given.get(0, "key")),
                         otherwise.is_discarded() ? Value(nullptr) : otherwise);
    }
    if (name != "keys" && name != "values")
      return std::nullopt;
    Value list = Value::array();
    for (const auto &[key, member] : value.items())
      list.push_back(name == "keys" ? Value(key) : member);
    return list;
  }
  if (!isText(value))
    return std::nullopt;
  const Value first = given.get(0, "");
  if (name == "strip" || name == "lstrip" || name == "rstrip")
    return stripped(text(value), isText(first) ? text(first) : " \t\r\n", name != "rstrip",
                    name != "lstrip");
  if (name == "startswith" && isText(first))
    return Value(text(value).starts_with(text(first)));
  if (name == "endswith" && isText(first))
    return Value(text(value).ends_with(text(first)));
  if (name == "split" && given.values.size() <= 1)
    return split(text(value), first);
  return filterText(name, text(value), given);
}

std::optional<bool> test(const std::string &name, const Value &value, const Arguments &given) {
  if (name == "defined" || name == "undefined")
    return value.is_discarded() == (name == "undefined");
  if (name == "none")
    return value.is_null();
  if (name == "string")
    return isText(value);
  if (name == "mapping")
    return value.is_object();
  if (name == "sequence" || name == "iterable")
    return isText(value) || value.is_structured();
  if (name == "number")
    return value.is_number();
  if (name == "integer")
    return isInteger(value);
  if (name == "boolean")
    return value.is_boolean();
  if (name == "true" || name == "false")
    return value.is_boolean() && value.get<bool>() == (name == "true");
  if ((name == "odd" || name == "even") && isInteger(value))
    return (value.get<int64_t>() % 2 != 0) == (name == "odd");
  if (name == "equalto" || name == "eq" || name == "==")
    return isTrue(*operate("==", value, given.get(0, "other")));
  if (name == "ne" || name == "!=")
    return !isTrue(*operate("==", value, given.get(0, "other")));
  if (name == "in")
    if (const auto found = contains(value, given.get(0, "seq")))
      return isTrue(*found);
  return std::nullopt;
}

} // namespace heddle::jinja
