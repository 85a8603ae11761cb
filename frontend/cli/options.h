// The options that verbs share, and the parsing of a verb's command line by CLI11.
#pragma once

#include "frontend/cli/command.h"
#include "frontend/cli/json.h"
#include "frontend/load.h"

#include "CLI/CLI.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle::command {

/// What every verb accepts.
struct CommonOptions {
  std::string fuse = "all";
  std::string dtype; ///< empty: as the model says
  std::string isa = "native";
  int threads = 0; ///< 0: the cores this process may use
  bool strict = false;
  std::string cacheDir;
  bool noCache = false;
  bool quiet = false;

  CompileOptions compileOptions() const;
};

/// A verb's command line.
class Parser {
public:
  Parser(const Invocation &invocation, const std::string &about);

  CLI::App &app() { return parser; }
  CommonOptions common;

  /// Adds MODEL, unless the program has a model of its own, and `--weights`.
  void addModel();

  /// An integer option that must be in [least, most].
  CLI::Option *addNumber(const std::string &name, int64_t &value, int64_t least, int64_t most,
                         const std::string &about);

  /// Adds `--json`.
  void addJson(std::string &file);

  /// Parses; the exit code where that was all there is to do.
  std::optional<int> parse();

  /// Finds the model that was named. Reads no weights.
  Result<LoadedModel> load() const;

private:
  const Invocation &invocation;
  CLI::App parser;
  std::string model;
  LoadOptions loading;
};

/// Reads "128,512". Error (usage): a number that is none or not in [least, most], no number.
Result<std::vector<int64_t>> readNumbers(std::string_view option, const std::string &text,
                                         int64_t least, int64_t most);

/// Prints the report, or its JSON where `json` is "-"; writes the JSON to the file `json` names, if
/// any.
Status report(std::string_view text, const Json &result, const std::string &json);

/// Heddle's version and that of what it stands on, in a line.
std::string versionText();

} // namespace heddle::command
