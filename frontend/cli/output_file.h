// Files that are written whole or not at all.
#pragma once

#include "runtime/result.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace heddle::command {

/// A file being written: without a name until all is there, or under another one beside its own
/// where the file system cannot do so. Gone without a trace if it does not come to that, on Ctrl-C
/// too; without a name also where the process is killed. Two at a time. Of a link, the file it
/// leads to is replaced. What is no regular file (a device, a pipe), or is a stream of a process
/// (in /dev or /proc) and may lead to one, is written to.
class OutputFile {
public:
  explicit OutputFile(std::string path) : path(std::move(path)) {}
  ~OutputFile();
  OutputFile(const OutputFile &) = delete;
  OutputFile &operator=(const OutputFile &) = delete;

  /// Each must succeed before the next. Errors (data): the file cannot be written, and why.
  Status open();
  Status write(std::span<const std::byte> bytes);
  Status commit();

private:
  Error failed() const;
  bool openNameless();
  Status nameWhole();

  std::string path;
  std::string target;    ///< what it stands for, once open; unused where it is written to
  std::string temporary; ///< empty where there is none
  bool isNameless = false;
  int file = -1;
};

/// Writes `text` to the file `path`, whole or not at all; "-" is standard output. Error (data).
Status writeFile(const std::string &path, std::string_view text);

} // namespace heddle::command
