// heddle list: what there is to choose from.
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/explain.h"
#include "frontend/models/shapes.h"

#include "fmt/format.h"

#include <algorithm>

namespace heddle::command {

static std::vector<CatalogEntry> listModels() {
  std::vector<CatalogEntry> entries;
  for (const BuiltinShape &shape : builtinShapes())
    entries.push_back({std::string(shape.name), "", std::string(shape.about)});
  return entries;
}

static std::string table(const std::vector<CatalogEntry> &entries) {
  size_t names = 0, kinds = 0;
  for (const CatalogEntry &entry : entries) {
    names = std::max(names, entry.name.size());
    kinds = std::max(kinds, entry.kind.size());
  }
  std::string text;
  for (const CatalogEntry &entry : entries) {
    text += bold(fmt::format("{:<{}}", entry.name, names)) + "  ";
    text += kinds ? dim(fmt::format("{:<{}}", entry.kind, kinds)) + "  " : "";
    text += entry.summary + "\n";
  }
  return text;
}

int list(const Invocation &invocation) {
  Parser parser(invocation, "Lists the built-in models, the passes, the operations of graphs, or "
                            "the operations that have kernels.");
  std::string what;
  parser.app()
      .add_option("WHAT", what, "models, passes, ops or kernels")
      ->required()
      ->check(CLI::IsMember({"models", "passes", "ops", "kernels"}));
  if (auto code = parser.parse())
    return *code;
  Status printed = print(table(what == "models"   ? listModels()
                               : what == "passes" ? listPasses()
                               : what == "ops"    ? listOperations()
                                                  : listKernels()));
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
