// The options that verbs share, and the parsing of a verb's command line by CLI11.
#pragma once

#include "frontend/choice_table.h"
#include "frontend/cli/command.h"
#include "frontend/cli/json.h"
#include "frontend/load.h"

#include "CLI/CLI.hpp"
#include "fmt/format.h"

#include <charconv>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace heddle::command {

/// What several verbs accept, each those that it has a use for (`commonOptions` in options.cpp).
struct CommonOptions {
  std::optional<std::string> fuse, dtype, kv, isa, plan;
  int threads = 0; ///< 0: the cores this process may use
  bool strict = false;
  std::optional<std::string> cacheDir;
  bool noCache = false;
  bool quiet = false;

  /// Read by `Parser::parse`; null: the built-in one.
  std::shared_ptr<const ChoiceTable> choices;

  CompileOptions compileOptions() const;
};

/// The table that `heddle machine --tune` writes and all verbs read:
/// `$XDG_CONFIG_HOME/heddle/choices.json` or `~/.config/heddle/choices.json`; empty where there is
/// no home.
std::string usualChoices();

/// What is wrong with `text` as a number in [least, most]; empty where nothing is.
template <class T>
std::string numberError(std::string_view text, T least, T most) {
  T number{};
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size() && number >= least && number <= most)
    return "";
  return fmt::format("needs a {} from {} to {}, found '{}'",
                     std::is_integral_v<T> ? "whole number" : "number", least, most, text);
}

/// A check of an option that must be one of `names`: what is wrong with a text, empty where nothing
/// is.
std::function<std::string(const std::string &)> oneOf(std::vector<std::string> names);

/// A verb's command line.
class Parser {
public:
  Parser(const Invocation &invocation, const std::string &about);

  CLI::App &app() { return parser; }
  CommonOptions common;

  /// Adds MODEL, unless the program has a model of its own, `--weights` and `--allow-unknown`.
  void addModel();

  /// An option that must be a number in [least, most], a whole one where `T` is an integer.
  template <class T>
  CLI::Option *addNumber(const std::string &name, T &value, std::type_identity_t<T> least,
                         std::type_identity_t<T> most, const std::string &about,
                         const std::string &letter = "N") {
    auto check = [=](const std::string &text) { return numberError(text, least, most); };
    return parser.add_option(name, value, about)->type_name(letter)->check(check);
  }

  /// Adds `--allow-unknown`.
  void addAllowUnknown(OpenOptions &opening);

  /// Adds `--json`.
  CLI::Option *addJson(std::string &file);

  /// Says that, where `does` is true when all is parsed, the verb writes the file of `--plan`,
  /// which therefore need not be there.
  void writesPlanIf(const bool &does) { writesPlan = &does; }

  /// Says that the model is read from what `path` names when all is parsed, a file or a folder.
  void reads(const std::string &path) { read.push_back(&path); }
  /// Says that the verb writes the file that `path` names when all is parsed. `parse` fails where
  /// that is part of the model, or written already: with the path between `before` and `after`.
  void writes(const std::string &path, std::string before, std::string after) {
    written.push_back({&path, std::move(before), std::move(after)});
  }

  /// Parses; the exit code where that was all there is to do.
  std::optional<int> parse();

  /// Finds the model that was named, for sessions of `context` positions (0: its own). Reads no
  /// weights. Where `tellsRemarks`, tells what is odd about its checkpoint: what its text begins
  /// and ends with, which model it takes it for.
  Result<LoadedModel> load(int64_t context = 0, bool tellsRemarks = false) const;

private:
  /// Whether the verb takes this common option.
  bool takes(std::string_view option) const;
  void addCommonOptions();

  struct Written {
    const std::string *path;
    std::string before, after;
  };
  /// What is wrong with an argument that the verb does not take; empty where there is none.
  std::string unknownArgument() const;
  Status checkNamed() const;
  Status checkWritten() const;
  Status checkSummary() const;

  const Invocation &invocation;
  CLI::App parser;
  const std::string *summary = nullptr;
  std::vector<const std::string *> read;
  std::vector<Written> written;
  const bool *writesPlan = nullptr;
  std::string model;
  LoadOptions loading;
};

/// Whether sessions of a model can have the `asked` positions of --context (0: not said). Error
/// (usage): it has a table of positions, and fewer.
Status checkContext(int64_t asked, const ModelInfo &info);
/// Tells where they are more than the model was made for.
void noteContext(int64_t asked, const LoadedModel &model, const ModelInfo &info);

/// Reads "128,512". Error (usage): a number that is none or not in [least, most], no number.
Result<std::vector<int64_t>> readNumbers(std::string_view option, const std::string &text,
                                         int64_t least, int64_t most);

/// The contents of a file; "-" is standard input. Error (data).
Result<std::string> readText(const std::string &path);

/// Prints the report, or its JSON where `json` is "-"; writes the JSON to the file `json` names, if
/// any.
Status report(std::string_view text, const Json &result, const std::string &json);

/// Heddle's version and that of what it stands on, in a line.
std::string versionText();

} // namespace heddle::command
