#include "frontend/tokenizers/json_fields.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

namespace heddle {

static const JsonValue nothing = JsonValue::object();
static const JsonValue noValues = JsonValue::array();

void JsonErrors::add(std::string_view field, std::string_view wrong) {
  if (!first)
    first = dataError(fmt::format("{}: {} {}", file, field, wrong));
}

std::string shown(const JsonValue &value) {
  if (value.is_string())
    return inQuotes(value.get_ref<const std::string &>());
  if (value.is_structured())
    return value.is_array() ? "an array" : "an object";
  return value.dump();
}

JsonFields::JsonFields(JsonErrors &errors, const JsonValue &value, std::string path)
    : errors(errors), value(value.is_object() ? value : nothing), path(std::move(path)) {
  if (!value.is_object())
    errors.add(this->path, fmt::format("is {}, expected an object", shown(value)));
}

std::string JsonFields::pathOf(std::string_view key) const {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void JsonFields::wrong(std::string_view key, std::string_view what) {
  errors.add(pathOf(key), what);
}

const JsonValue *JsonFields::find(const char *key) {
  asked.insert(key);
  const auto found = value.find(key);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

const JsonValue &JsonFields::required(const char *key) {
  const JsonValue *found = find(key);
  if (!found)
    wrong(key, "is missing");
  return found ? *found : nothing;
}

std::string JsonFields::text(const char *key) {
  const JsonValue &found = required(key);
  if (found.is_string())
    return found.get<std::string>();
  wrong(key, fmt::format("is {}, expected a text", shown(found)));
  return "";
}

std::string JsonFields::text(const char *key, std::string otherwise) {
  return find(key) ? text(key) : std::move(otherwise);
}

bool JsonFields::flag(const char *key, bool otherwise) {
  const JsonValue *found = find(key);
  if (!found)
    return otherwise;
  if (found->is_boolean())
    return found->get<bool>();
  wrong(key, fmt::format("is {}, expected true or false", shown(*found)));
  return otherwise;
}

int64_t JsonFields::integer(const char *key, int64_t least, int64_t most) {
  const JsonValue &found = required(key);
  if (found.is_number_integer() && !(found.is_number_unsigned() && found.get<uint64_t>() >> 63)) {
    const auto number = found.get<int64_t>();
    if (number >= least && number <= most)
      return number;
  }
  wrong(key,
        fmt::format("is {}, expected a whole number from {} to {}", shown(found), least, most));
  return least;
}

int64_t JsonFields::integer(const char *key, int64_t otherwise, int64_t least, int64_t most) {
  return find(key) ? integer(key, least, most) : otherwise;
}

const JsonValue &JsonFields::array(const char *key) {
  const JsonValue *found = find(key);
  if (found && !found->is_array())
    wrong(key, fmt::format("is {}, expected an array", shown(*found)));
  return found && found->is_array() ? *found : noValues;
}

const JsonValue &JsonFields::object(const char *key) {
  const JsonValue *found = find(key);
  if (found && !found->is_object())
    wrong(key, fmt::format("is {}, expected an object", shown(*found)));
  return found && found->is_object() ? *found : nothing;
}

void JsonFields::finish() {
  for (const auto &[key, unknown] : value.items())
    if (!asked.contains(key) && !unknown.is_null())
      wrong(printable(key), "is not known here, and could change how a text is cut");
}

} // namespace heddle
