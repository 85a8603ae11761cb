// What depends on whether somebody watches: colour, progress, Ctrl-C.
#pragma once

#include "frontend/load.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::command {

bool stdoutIsTerminal();
bool stderrIsTerminal();

/// `text` in bold, dim or green where standard output is a terminal that has colours and NO_COLOR
/// (https://no-color.org) is not set; as it is elsewhere.
std::string bold(std::string_view text);
std::string dim(std::string_view text);
std::string green(std::string_view text);

/// One line on standard error that says how far something long has come, drawn in place. Draws only
/// on a terminal, and is gone when this object is.
class ProgressLine {
public:
  explicit ProgressLine(bool wanted);
  ~ProgressLine();
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// "what 42 %"; without a share where `total` is 0.
  void update(std::string_view what, int64_t done = 0, int64_t total = 0);
  void clear();

  /// Draws how far compilations with these options have come; they may live as long as this object.
  void follow(CompileOptions &options);

private:
  bool wanted;
  bool drawn = false;
  std::chrono::steady_clock::time_point last;
};

/// Compiles a model, with a progress line if `wanted`. Errors as for `compile`.
Result<Model> compileWithProgress(const LoadedModel &model, CompileOptions options, bool wanted);

/// From now on Ctrl-C removes the temporary file being written, if any, wipes the progress line and
/// ends the process with code 130. So do SIGTERM and SIGHUP, which then end it as they always do.
void endOnInterrupt();

/// Names a temporary file, one of two at most, that an interrupt is to remove, until it is to keep
/// it. The text must stay as long.
void removeOnInterrupt(const char *path);
void keepOnInterrupt(const char *path);

} // namespace heddle::command
