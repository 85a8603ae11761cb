// Reads a configuration in JSON key by key, and remembers which keys were asked for, so that none
// is ignored.
#pragma once

#include "frontend/formats/json_reader.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// An object of a configuration. The first error (data, naming file and key) is kept; getters then
/// go on with harmless values. A key whose value is null counts as missing.
class ConfigReader {
public:
  /// `file` is named in errors. `object` must be an object and outlive the reader.
  ConfigReader(const JsonValue &object, std::string file);

  bool has(std::string_view key);
  /// Whether the key is there at all, be its value null.
  bool mentions(std::string_view key);
  int64_t integer(const char *key, int64_t least, std::optional<int64_t> fallback = std::nullopt);
  /// A finite number above `above`.
  double number(const char *key, std::optional<double> fallback = std::nullopt,
                double above = -std::numeric_limits<double>::infinity());
  bool boolean(const char *key, bool fallback);
  std::string text(const char *key, std::optional<std::string> fallback = std::nullopt);
  /// `count` numbers above 0.
  std::vector<double> factors(const char *key, int64_t count);
  std::vector<std::string> texts(const char *key);
  /// One id or several, whether or not a vocabulary has them; none where the key is missing.
  std::vector<int64_t> ids(const char *key);
  /// Whole numbers from 0 up to `below`; none where the key is missing.
  std::vector<int64_t> indices(const char *key, int64_t below);

  /// The object at `key`, sharing errors with this one; its keys are told as "key.inner".
  ConfigReader inner(const char *key);

  /// Says that `key`, if it is there, has no influence on results.
  void harmless(std::string_view key);

  /// Keeps an error about `key`, unless there is one.
  void fail(std::string_view key, const std::string &expected);
  /// The same about the whole file.
  void fail(const std::string &message);
  const std::optional<Error> &error() const { return shared->error; }

  /// Keys, in here and in inner objects, that nobody asked for and that are not null.
  std::vector<std::string> unknown() const;
  /// Keys, of the whole file, that are there, harmless, and were not asked for.
  std::vector<std::string> unused() const;

  std::string shown(std::string_view key); ///< the value at `key`, for errors
  std::string nameOf(std::string_view key) const { return prefix + std::string(key); }

  /// Whether both are missing, or both are there with one value; numbers count, not their spelling.
  friend bool areSame(ConfigReader &one, std::string_view key, ConfigReader &other,
                      std::string_view otherKey);

private:
  struct Shared {
    std::string file;
    std::optional<Error> error;
    std::set<std::string> used, harmless; ///< whole names
    const JsonValue *root = nullptr;
  };
  ConfigReader(const JsonValue &object, std::string prefix, std::shared_ptr<Shared> shared)
      : object(object), prefix(std::move(prefix)), shared(std::move(shared)) {}

  void use(std::string_view key) { shared->used.insert(prefix + std::string(key)); }
  /// The value, marked as used; null where it is missing.
  const JsonValue *find(std::string_view key);

  const JsonValue &object;
  std::string prefix;
  std::shared_ptr<Shared> shared;
};

bool areSame(ConfigReader &one, std::string_view key, ConfigReader &other,
             std::string_view otherKey);

/// Keeps an error that names both keys where both are there and their values differ.
void mustAgree(ConfigReader &one, std::string_view key, ConfigReader &other,
               std::string_view otherKey);

} // namespace heddle
