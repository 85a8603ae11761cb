// heddle show: a model as text, at any level.
#include "frontend/cli/options.h"

#include "fmt/format.h"

#include <map>

namespace heddle::command {

int show(const Invocation &invocation) {
  Parser parser(invocation, "Prints a model: its graph, what fusion makes of it, the plan, the "
                            "kernels, LLVM IR or machine code.");
  parser.addModel();
  static const std::map<std::string, Level> levels = {
      {"graph", Level::graph}, {"fused", Level::fused}, {"planned", Level::planned},
      {"loops", Level::loops}, {"llvm", Level::llvm},   {"asm", Level::assembly}};
  std::string level = "graph";
  std::optional<std::string> phase;
  parser.app()
      .add_option("--emit", level, "graph, fused, planned, loops, llvm or asm; graph by default")
      ->type_name("LEVEL")
      ->check(oneOf({"graph", "fused", "planned", "loops", "llvm", "asm"}));
  parser.app()
      .add_option(
          "--phase", phase,
          "the program to print from level planned on: prefill, for many tokens at once, or "
          "decode; prefill by default, of planned text its own")
      ->type_name("PHASE")
      ->check(oneOf({"prefill", "decode"}));
  if (auto code = parser.parse())
    return *code;

  auto model = parser.load();
  if (!model)
    return fail(model.error());
  std::optional<Phase> wanted;
  if (phase)
    wanted = *phase == "decode" ? Phase::decode : Phase::prefill;
  if (wanted && levels.at(level) == Level::graph)
    return fail(usageError(fmt::format("--phase {}: level graph has one program for both phases; "
                                       "fused, planned, loops, llvm and asm have one for each",
                                       *phase)));
  auto text = heddle::show(model->source, levels.at(level), wanted, parser.common.compileOptions());
  if (!text)
    return fail(text.error());
  Status printed = print(*text);
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
