#include "frontend/cli/json.h"

#include "frontend/cli/command.h"
#include "frontend/cli/terminal.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

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

static Status writeAll(int file, std::string_view text, const std::string &path) {
  while (!text.empty()) {
    ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno != EINTR)
      return dataError(path + ": cannot be written: " + std::strerror(errno));
    text.remove_prefix(written > 0 ? static_cast<size_t>(written) : 0);
  }
  return {};
}

Status writeFile(const std::string &path, std::string_view text) {
  if (path == "-")
    return print(text);
  struct stat existing = {};
  if (stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode)) {
    // A device or a pipe cannot be replaced by a file.
    std::FILE *file = std::fopen(path.c_str(), "w");
    if (!file)
      return dataError(path + ": cannot be written: " + std::strerror(errno));
    Status status = writeAll(fileno(file), text, path);
    std::fclose(file);
    return status;
  }
  std::string temporary = path + ".XXXXXX";
  int file = mkstemp(temporary.data());
  if (file < 0)
    return dataError(path + ": cannot be written: " + std::strerror(errno));
  removeOnInterrupt(temporary.c_str());
  Status status = writeAll(file, text, path);
  mode_t mask = umask(0);
  umask(mask);
  fchmod(file, 0666 & ~mask);
  close(file);
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0)
    status = dataError(path + ": cannot be written: " + std::strerror(errno));
  if (!status)
    unlink(temporary.c_str());
  removeOnInterrupt(nullptr);
  return status;
}

} // namespace heddle::command
