// Results as JSON, members in the order they were given.
#pragma once

#include "runtime/result.h"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::command {

/// A JSON value, kept as its text.
class Json {
public:
  using Member = std::pair<std::string_view, Json>;

  Json(bool value) : text(value ? "true" : "false") {}
  Json(std::integral auto value) : text(std::to_string(value)) {}
  /// Six digits, as measurements have at most; null where it is not a number.
  Json(double value);
  Json(std::string_view value);
  Json(const std::string &value) : Json(std::string_view(value)) {}
  Json(const char *value) : Json(std::string_view(value)) {}
  static Json null() { return Json(Text{"null"}); }

  static Json object(std::initializer_list<Member> members);
  static Json object(const std::vector<Member> &members);
  static Json array(const std::vector<Json> &values);

  /// The value on lines of its own, indented, with a newline at the end.
  std::string str() const { return text + "\n"; }

private:
  struct Text {
    std::string value;
  };
  explicit Json(Text text) : text(std::move(text.value)) {}
  static Json list(char open, char close, const std::vector<std::string> &items);

  std::string text;
};

} // namespace heddle::command
