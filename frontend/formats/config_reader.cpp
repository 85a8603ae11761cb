#include "frontend/formats/config_reader.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace heddle {

ConfigReader::ConfigReader(const JsonValue &object, std::string file)
    : object(object), shared(std::make_shared<Shared>()) {
  shared->file = std::move(file);
  shared->root = &object;
}

const JsonValue *ConfigReader::find(std::string_view key) {
  use(key);
  const auto found = object.find(std::string(key));
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::has(std::string_view key) { return find(key) != nullptr; }

std::string ConfigReader::shown(std::string_view key) {
  const JsonValue *value = find(key);
  if (!value)
    return "missing";
  // Only what cannot be deep or long is written out.
  if (value->is_object() || value->is_array())
    return fmt::format("{} of {}", value->type_name(), value->size());
  if (value->is_string())
    return inQuotes(value->get_ref<const std::string &>());
  return value->dump();
}

void ConfigReader::harmless(std::string_view key) {
  const auto found = object.find(std::string(key));
  if (found != object.end() && !found->is_null())
    shared->harmless.insert(nameOf(key));
}

bool ConfigReader::mentions(std::string_view key) {
  use(key);
  return object.contains(std::string(key));
}

void ConfigReader::fail(const std::string &message) {
  if (!shared->error)
    shared->error = dataError(shared->file + ": " + message);
}

void ConfigReader::fail(std::string_view key, const std::string &expected) {
  fail(fmt::format("key {} is {}: expected {}", inQuotes(prefix + std::string(key)), shown(key),
                   expected));
}

int64_t ConfigReader::integer(const char *key, int64_t least, std::optional<int64_t> fallback) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  const JsonValue *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (!value || !value->is_number_integer() ||
      (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(most)) ||
      value->get<int64_t>() < least) {
    fail(key, fmt::format("a whole number from {} to {}", least, most));
    return least;
  }
  return value->get<int64_t>();
}

double ConfigReader::number(const char *key, std::optional<double> fallback, double above) {
  const JsonValue *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (!value || !value->is_number() || !std::isfinite(value->get<double>()) ||
      !(value->get<double>() > above)) {
    fail(key, std::isinf(above) ? "a number" : fmt::format("a number above {}", above));
    return 1;
  }
  return value->get<double>();
}

bool ConfigReader::boolean(const char *key, bool fallback) {
  const JsonValue *value = find(key);
  if (!value)
    return fallback;
  if (!value->is_boolean())
    fail(key, "true or false");
  return value->is_boolean() && value->get<bool>();
}

std::string ConfigReader::text(const char *key, std::optional<std::string> fallback) {
  const JsonValue *value = find(key);
  if (!value && fallback)
    return *fallback;
  if (value && value->is_string())
    return value->get<std::string>();
  fail(key, "text");
  return "";
}

std::vector<double> ConfigReader::factors(const char *key, int64_t count) {
  const JsonValue *value = find(key);
  std::vector<double> result;
  if (value && value->is_array())
    for (const JsonValue &entry : *value)
      if (entry.is_number() && std::isfinite(entry.get<double>()) && entry.get<double>() > 0)
        result.push_back(entry.get<double>());
  if (!value || !value->is_array() || value->size() != size_t(count) ||
      result.size() != value->size())
    fail(key, fmt::format("an array of {} numbers above 0", count));
  return result;
}

std::vector<std::string> ConfigReader::texts(const char *key) {
  const JsonValue *value = find(key);
  std::vector<std::string> result;
  if (value && value->is_array())
    for (const JsonValue &entry : *value)
      if (entry.is_string())
        result.push_back(entry.get<std::string>());
  if (!value || !value->is_array() || result.size() != value->size())
    fail(key, "an array of texts");
  return result;
}

std::vector<int64_t> ConfigReader::ids(const char *key) {
  const JsonValue *value = find(key);
  std::vector<int64_t> result;
  auto add = [&](const JsonValue &id) {
    // What is beyond int64_t is unsigned.
    if (id.is_number_integer() && (!id.is_number_unsigned() || id.get<uint64_t>() >> 63 == 0))
      result.push_back(id.get<int64_t>());
  };
  if (value && value->is_array())
    for (const JsonValue &id : *value)
      add(id);
  else if (value)
    add(*value);
  if (value && result.size() != (value->is_array() ? value->size() : 1))
    fail(key, "a whole number or an array of such");
  return result;
}

std::vector<int64_t> ConfigReader::indices(const char *key, int64_t below) {
  const JsonValue *value = find(key);
  std::vector<int64_t> result;
  if (value && value->is_array())
    for (const JsonValue &entry : *value) {
      // What is beyond int64_t is unsigned.
      const bool fits = entry.is_number_unsigned()
                            ? entry.get<uint64_t>() < uint64_t(below)
                            : entry.is_number_integer() && entry.get<int64_t>() >= 0 &&
                                  entry.get<int64_t>() < below;
      if (fits)
        result.push_back(entry.get<int64_t>());
    }
  if (value && (!value->is_array() || result.size() != value->size()))
    fail(key, fmt::format("an array of whole numbers from 0 to {}", below - 1));
  return result;
}

ConfigReader ConfigReader::inner(const char *key) {
  static const JsonValue empty = JsonValue::object();
  const JsonValue *value = find(key);
  if (value && !value->is_object())
    fail(key, "an object");
  return {value && value->is_object() ? *value : empty, prefix + key + ".", shared};
}

std::vector<std::string> ConfigReader::unknown() const {
  std::vector<std::string> names;
  for (const auto &[key, value] : object.items()) {
    if (value.is_null())
      continue;
    const std::string name = prefix + key;
    if (!shared->used.contains(name)) {
      if (!shared->harmless.contains(name))
        names.push_back(name);
      continue;
    }
    // An object somebody looked into: its members count one by one.
    const std::string within = name + ".";
    const auto first = shared->used.lower_bound(within);
    if (value.is_object() && first != shared->used.end() && first->starts_with(within))
      for (std::string &inside : ConfigReader(value, within, shared).unknown())
        names.push_back(std::move(inside));
  }
  return names;
}

std::vector<std::string> ConfigReader::unused() const {
  std::vector<std::string> names;
  std::ranges::set_difference(shared->harmless, shared->used, std::back_inserter(names));
  return names;
}

bool areSame(ConfigReader &one, std::string_view key, ConfigReader &other,
             std::string_view otherKey) {
  const JsonValue *first = one.find(key), *second = other.find(otherKey);
  return first && second ? *first == *second : first == second;
}

void mustAgree(ConfigReader &one, std::string_view key, ConfigReader &other,
               std::string_view otherKey) {
  if (one.has(key) && other.has(otherKey) && !areSame(one, key, other, otherKey))
    one.fail(fmt::format("keys {} and {} disagree: {} and {}", inQuotes(one.nameOf(key)),
                         inQuotes(other.nameOf(otherKey)), one.shown(key), other.shown(otherKey)));
}

} // namespace heddle
