#include "frontend/cli/json.h"

#include <cmath>
#include <cstdio>

namespace heddle::command {

Json::Json(double value) {
  if (!std::isfinite(value)) {
    text = "null";
    return;
  }
  char buffer[40];
  std::snprintf(buffer, sizeof(buffer), "%.6g", value);
  text = buffer;
}

Json::Json(std::string_view value) : text("\"") {
  for (char c : value) {
    char buffer[8];
    auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      (text += '\\') += c;
    else if (byte < 0x20)
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", byte), text += buffer;
    else
      text += c;
  }
  text += '"';
}

/// Small things stay on one line.
Json Json::list(char open, char close, const std::vector<std::string> &items) {
  constexpr size_t longestLine = 100;
  size_t length = 0;
  bool nested = false;
  for (const std::string &item : items) {
    length += item.size() + 2;
    nested |= item.find('\n') != std::string::npos;
  }
  std::string text(1, open);
  bool lines = nested || length > longestLine;
  for (size_t i = 0; i < items.size(); ++i) {
    text += i == 0 ? "" : lines ? "," : ", ";
    if (!lines) {
      text += items[i];
      continue;
    }
    text += "\n  ";
    for (char c : items[i])
      text += c == '\n' ? "\n  " : std::string(1, c);
  }
  text += lines ? "\n" : "";
  return Json(Text{text + close});
}

Json Json::object(const std::vector<Member> &members) {
  std::vector<std::string> items;
  for (const auto &[name, value] : members)
    items.push_back(Json(name).text + ": " + value.text);
  return list('{', '}', items);
}

Json Json::object(std::initializer_list<Member> members) {
  return object(std::vector<Member>(members));
}

Json Json::array(const std::vector<Json> &values) {
  std::vector<std::string> items;
  for (const Json &value : values)
    items.push_back(value.text);
  return list('[', ']', items);
}

} // namespace heddle::command
