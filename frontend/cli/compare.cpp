// heddle compare: fused against unfused.
#include "frontend/cli/comparison.h"
#include "frontend/cli/comparison_report.h"
#include "frontend/cli/options.h"

namespace heddle::command {

int compare(const Invocation &invocation) {
  Parser parser(invocation,
                "Runs a model fused and unfused in turn, and with each fusion left out, "
                "and measures the results against fp64.");
  parser.addModel();
  ComparisonOptions options;
  std::string json;
  constexpr int64_t most = 1 << 24;
  parser.addNumber("--prompt-tokens", options.promptTokens, 1, most,
                   "length of the prompt (512, or what fits)");
  parser.addNumber("--error-tokens", options.errorTokens, 1, most,
                   "tokens of it to compare with fp64; by default at most 32");
  std::string by;
  parser.app()
      .add_option("--by", by,
                  "fusion: of each fusion left out too, time with its spread, costs and errors")
      ->type_name("WHAT")
      ->check(oneOf({"fusion"}));
  parser.addNumber("--reps", options.reps, 1, 1000, "repetitions (5)");
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;
  options.byFusion = by == "fusion";
  options.compile = parser.common.compileOptions();
  auto model = parser.load();
  if (!model)
    return fail(model.error());
  ProgressLine progress(!parser.common.quiet);
  auto comparison = compareFusion(*model, options, progress);
  if (!comparison)
    return fail(comparison.error());
  Status written = report(comparisonText(*comparison, model->name, options.reps),
                          comparisonJson(*comparison), json);
  return written ? exitOk : fail(written.error());
}

} // namespace heddle::command
