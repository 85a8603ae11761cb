// What the verbs share: how they are called, their exit codes, how they report errors.
#pragma once

#include "runtime/result.h"

#include <string>
#include <string_view>

namespace heddle {
class Graph;
}

namespace heddle::command {

enum ExitCode : int {
  exitOk = 0,
  exitFailed = 1,
  exitUsage = 2,
  exitInternal = 70,
  exitInterrupted = 130,
};

/// How a verb was called. `argv[0]` is the verb's whole name, "heddle run".
struct Invocation {
  int argc;
  char **argv;
  const Graph *graph = nullptr; ///< the model of a user's program; stands for MODEL
  std::string program = {};     ///< what the user called it by, "./heddle"
  std::string_view verb = {};   ///< "run"
};

// The verbs, each in a file of its own.
int show(const Invocation &invocation);
int inspect(const Invocation &invocation);
int run(const Invocation &invocation);
int explain(const Invocation &invocation);
int compare(const Invocation &invocation);
int bench(const Invocation &invocation);
int reduce(const Invocation &invocation);
int machine(const Invocation &invocation);
int list(const Invocation &invocation);
int demo(const Invocation &invocation);
int score(const Invocation &invocation);
int tokenize(const Invocation &invocation);
int quantize(const Invocation &invocation);

/// Prints the error to standard error, a line for each of its lines, and gives its exit code.
int fail(const Error &error);

/// A remark on standard error, "heddle: ...".
void note(std::string_view text);

/// Writes all of `text` to standard output and flushes it. Error (data): it cannot be written.
Status print(std::string_view text);

} // namespace heddle::command
