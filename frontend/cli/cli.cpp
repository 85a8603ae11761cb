// The command line: a table of verbs. What is after the verb is the verb's own.
#include "frontend/cli/command.h"
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/command_line.h"
#include "frontend/compiler/opt.h"

#include "fmt/format.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>

namespace heddle::command {

static int opt(const Invocation &invocation) {
  return heddle::opt(invocation.argc, invocation.argv);
}

struct Verb {
  std::string_view name;
  std::string_view arguments;
  std::string_view summary;
  int (*run)(const Invocation &invocation);
};

static constexpr Verb verbs[] = {
    {"demo", "", "describe a model, fuse it, run it, compare: the tour", demo},
    {"inspect", "MODEL", "what is in a model's files, and what heddle does with it", inspect},
    {"show", "MODEL", "print a model at any level from its graph to machine code", show},
    {"run", "MODEL", "generate text", run},
    {"score", "MODEL", "how likely a model finds a text", score},
    {"tokenize", "MODEL", "the token ids of a text", tokenize},
    {"quantize", "IN", "a model as a GGUF file, its weights in another type", quantize},
    {"explain", "MODEL", "what was fused, what that saves, what was not fused and why", explain},
    {"compare", "MODEL", "fused against unfused: time, memory, error", compare},
    {"bench", "MODEL", "tokens per second, against what the machine can do", bench},
    {"reduce", "MODEL", "the smallest graph that still goes wrong", reduce},
    {"machine", "", "measure what this machine can do", machine},
    {"list", "WHAT", "models, passes, ops or kernels", list},
    {"opt", "[FILE]", "run passes on the text of a graph, as mlir-opt does", opt},
};

static std::string helpText(const std::string &program, bool ownModel) {
  std::string text = "usage: " + program + " VERB [ARGUMENT...]\n\n";
  for (const Verb &verb : verbs)
    text += fmt::format("  {:<8} {:<6} {}\n", verb.name,
                        ownModel && verb.arguments == "MODEL" ? "" : verb.arguments, verb.summary);
  if (!ownModel)
    text += "\nMODEL is a checkpoint, a file of graph text, or a built-in shape (" + program +
            " list models).";
  return text + "\n`" + program + " VERB --help` says what a verb takes.\n";
}

int fail(const Error &error) {
  std::string_view rest = error.message;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    note(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  switch (error.kind) {
  case ErrorKind::usage:
    return exitUsage;
  case ErrorKind::data:
    return exitFailed;
  case ErrorKind::internal:
    break;
  }
  return exitInternal;
}

void note(std::string_view text) {
  std::fprintf(stderr, "heddle: %.*s\n", static_cast<int>(text.size()), text.data());
}

Status print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    return dataError(std::string("standard output cannot be written: ") + std::strerror(errno));
  return {};
}

/// What the user calls this program by: as it was typed, but the tool by its launcher's name.
static std::string programName(const Invocation &invocation) {
  std::string_view path = invocation.argc > 0 ? invocation.argv[0] : "";
  std::string_view name = path.substr(path.rfind('/') + 1);
  return name.empty() || name == "heddle-tool" ? "heddle" : std::string(path);
}

static int dispatch(Invocation invocation) {
  std::string_view name = invocation.argc > 1 ? invocation.argv[1] : "";
  invocation.program = programName(invocation);
  const std::string &program = invocation.program;
  std::string help = helpText(program, invocation.graph != nullptr);
  if (name == "--help" || name == "-h" || name == "help") {
    Status printed = print(help);
    return printed ? exitOk : fail(printed.error());
  }
  if (name == "--version") {
    Status printed = print(versionText() + "\n");
    return printed ? exitOk : fail(printed.error());
  }
  for (const Verb &verb : verbs) {
    if (verb.name != name)
      continue;
    std::string title = program + " " + std::string(verb.name);
    invocation.argv[1] = title.data();
    invocation.verb = verb.name;
    --invocation.argc;
    ++invocation.argv;
    endOnInterrupt();
    return verb.run(invocation);
  }
  if (!name.empty()) {
    note(fmt::format("unknown verb '{}' (see {} --help)", name, program));
    return exitUsage;
  }
  std::fputs(help.c_str(), stderr);
  return exitUsage;
}

static int guarded(const Invocation &invocation) {
  try {
    return dispatch(invocation);
  } catch (const std::bad_alloc &) {
    return fail(dataError("out of memory"));
  } catch (const std::exception &error) {
    return fail(internalError(error.what()));
  }
}

} // namespace heddle::command

namespace heddle {

int cli(int argc, char **argv) { return command::guarded({argc, argv, nullptr}); }

int cli(int argc, char **argv, const Graph &graph) {
  return command::guarded({argc, argv, &graph});
}

} // namespace heddle
