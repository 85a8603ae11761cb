// Typed access to the fields of a JSON file that complains of what is wrong or unknown.
#pragma once

#include "frontend/formats/json_reader.h"
#include "runtime/result.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace heddle {

/// The first thing that was wrong with a file.
struct JsonErrors {
  std::string file;
  std::optional<Error> first = std::nullopt;

  void add(std::string_view field, std::string_view wrong);
  Status status() const { return first ? Status(*first) : Status(); }
};

/// An object and its place in the file. A field that is null counts as missing. What is missing or
/// of another type is noted in the errors, and a default given instead.
class JsonFields {
public:
  JsonFields(JsonErrors &errors, const JsonValue &value, std::string path);

  std::string text(const char *key);
  std::string text(const char *key, std::string otherwise);
  bool flag(const char *key, bool otherwise);
  int64_t integer(const char *key, int64_t least, int64_t most);
  int64_t integer(const char *key, int64_t otherwise, int64_t least, int64_t most);

  /// The value, or null; of any type.
  const JsonValue *find(const char *key);
  /// The array of that name; an empty one where there is none.
  const JsonValue &array(const char *key);
  /// The object of that name; an empty one where there is none.
  const JsonValue &object(const char *key);

  std::string pathOf(std::string_view key) const;
  void wrong(std::string_view key, std::string_view what);

  /// Complains of every field that was not asked for.
  void finish();

private:
  const JsonValue &required(const char *key);

  JsonErrors &errors;
  const JsonValue &value;
  std::string path;
  std::set<std::string_view> asked;
};

/// For messages: the value in at most some 60 characters.
std::string shown(const JsonValue &value);

} // namespace heddle
