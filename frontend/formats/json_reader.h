// Reads JSON: configurations, headers, tokenizers. Not part of the public API, whose headers lead
// to no header of a library.
#pragma once

#include "runtime/result.h"

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace heddle {

/// A JSON value; objects are sorted by key. Its accessors by type throw where the type is another
/// one: ask `is_string()` and its like first.
using JsonValue = nlohmann::json;

/// Reads `text`, a whole file (or a part of it, from offset `start`) called `name` in errors.
/// Errors (data): no JSON or no UTF-8, at which offset; a key that comes twice in one object;
/// nested deeper than 128.
Result<JsonValue> parseJson(std::string_view text, const std::string &name, size_t start = 0);

/// Reads the file at `path`. Errors (data): as above; it cannot be opened.
Result<JsonValue> readJsonFile(const std::string &path);

} // namespace heddle
