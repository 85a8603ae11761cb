// The command line: a table of verbs. What is after the verb is the verb's own.
#include "frontend/compiler/opt.h"

#include <cstdio>
#include <string>
#include <string_view>

namespace {

/// The command line could not be understood.
constexpr int exitUsage = 2;

struct Verb {
  std::string_view name;
  std::string_view summary;
  /// Runs it on its arguments, `argv[0]` being "heddle VERB"; returns the exit code.
  int (*run)(int argc, char **argv);
};

constexpr Verb verbs[] = {
    {"opt", "run passes on the text of a graph, as mlir-opt does", heddle::opt},
};

void printHelp(std::FILE *to) {
  std::fputs("usage: heddle VERB [ARGUMENT...]\n\n", to);
  for (const Verb &verb : verbs)
    std::fprintf(to, "  %-10.*s %.*s\n", int(verb.name.size()), verb.name.data(),
                 int(verb.summary.size()), verb.summary.data());
  std::fputs("\n`heddle VERB --help` says what a verb takes.\n", to);
}

} // namespace

int main(int argc, char **argv) {
  std::string_view name = argc > 1 ? argv[1] : "";
  if (name == "--help" || name == "-h" || name == "help") {
    printHelp(stdout);
    return 0;
  }
  for (const Verb &verb : verbs) {
    if (verb.name != name)
      continue;
    std::string title = "heddle " + std::string(verb.name);
    argv[1] = title.data();
    return verb.run(argc - 1, argv + 1);
  }
  if (!name.empty())
    std::fprintf(stderr, "heddle: unknown verb '%s'\n", argv[1]);
  printHelp(stderr);
  return exitUsage;
}
