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

static Json describe(const std::vector<CatalogEntry> &entries) {
  std::vector<Json> all;
  for (const CatalogEntry &entry : entries) {
    std::vector<Json::Member> members = {{"name", entry.name}, {"summary", entry.summary}};
    if (!entry.kind.empty())
      members.insert(members.begin() + 1, {"kind", entry.kind});
    all.push_back(Json::object(members));
  }
  return Json::array(all);
}

int list(const Invocation &invocation) {
  Parser parser(invocation, "Lists the built-in models, the passes, the operations of graphs, or "
                            "the operations that have kernels.");
  std::string what, json;
  parser.app()
      .add_option("WHAT", what, "models, passes, ops or kernels")
      ->required()
      ->check(oneOf({"models", "passes", "ops", "kernels"}));
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;
  const std::vector<CatalogEntry> entries = what == "models"   ? listModels()
                                            : what == "passes" ? listPasses()
                                            : what == "ops"    ? listOperations()
                                                               : listKernels();
  Status printed = report(table(entries), describe(entries), json);
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
