// heddle score: how likely a model finds a text.
#include "frontend/cli/options.h"
#include "frontend/cli/terminal.h"
#include "frontend/generate.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <algorithm>
#include <cmath>

namespace heddle::command {

namespace {

Json describe(const TextScore &score, int64_t context) {
  std::vector<Json> ids, likelihoods;
  for (const int32_t id : score.ids)
    ids.emplace_back(id);
  for (const double value : score.logLikelihoods)
    likelihoods.push_back(std::isnan(value) ? Json::null() : Json(value));
  return Json::object({{"tokens", static_cast<int64_t>(score.ids.size())},
                       {"scored", score.scored},
                       {"windows", score.windows},
                       {"context", context},
                       {"log_likelihood", score.sum},
                       {"log_likelihood_per_token", score.sum / static_cast<double>(score.scored)},
                       {"perplexity", score.perplexity()},
                       {"ids", Json::array(ids)},
                       {"log_likelihoods", Json::array(likelihoods)}});
}

std::string table(const TextScore &score, int64_t context) {
  std::string text =
      fmt::format("tokens          {}\nscored          {}\n", score.ids.size(), score.scored);
  if (score.windows > 1)
    text += fmt::format("windows         {} of {} positions\n", score.windows, context);
  return text +
         fmt::format("log-likelihood  {:.6g}\nper token       {:.6f}\nperplexity      {:.6g}\n",
                     score.sum, score.sum / static_cast<double>(score.scored), score.perplexity());
}

/// A text as its model reads it.
struct Tokens {
  std::vector<int32_t> ids;
  int32_t bos = TextMarks::none; ///< what windows begin with
  bool leavesEnd = false;        ///< whether the tokenizer would end it with a mark
};

} // namespace

/// The ids of the text in `file`, of which at least one must come after another.
static Result<Tokens> readTokens(const std::string &file, const LoadedModel &model,
                                 const std::string &tokenizerPath, int64_t words) {
  auto text = readText(file);
  if (!text)
    return text.error();
  auto tokenizer = loadTokenizer(model, tokenizerPath, words);
  if (!tokenizer)
    return tokenizer.error();
  if (!tokenizer->tokenizer)
    return dataError("a text needs a tokenizer: " + tokenizer->whyNone);
  const TextMarks &marks = tokenizer->tokenizer->marks();
  auto ids = tokenizer->tokenizer->encode(*text, false);
  if (!ids)
    return ids.error();
  const int32_t bos = marks.addsBos ? marks.bos : TextMarks::none;
  const int64_t count = std::ssize(*ids);
  if (count + (bos != TextMarks::none) < 2)
    return dataError(fmt::format("{}: has {}, expected one that another stands before", file,
                                 counted(count, "token")));
  return Tokens{std::move(*ids), bos, marks.addsEos};
}

int score(const Invocation &invocation) {
  Parser parser(invocation, "Scores a text: the logarithm of its likelihood, and its perplexity.");
  parser.addModel();
  std::string file, tokenizerPath, json;
  int64_t context = 0;
  CLI::App &app = parser.app();
  app.add_option("FILE", file, "the text (- is standard input)")->type_name("FILE")->required();
  // In a window of one position nothing stands before what is scored.
  parser.addNumber("--context", context, 2, 1 << 30,
                   "positions of a window; a longer text is scored window by window");
  app.add_option("--tokenizer", tokenizerPath, "the tokenizer; found beside the checkpoint")
      ->type_name("FILE");
  parser.reads(tokenizerPath);
  parser.reads(file);
  parser.addJson(json);
  if (auto code = parser.parse())
    return *code;

  auto model = parser.load(context, /*tellsRemarks=*/true);
  if (!model)
    return fail(model.error());
  const bool quiet = parser.common.quiet;
  Tokens tokens;
  CompileOptions compiling = parser.common.compileOptions();
  // What can be wrong before the model is compiled.
  compiling.check = [&](const ModelInfo &info) -> Status {
    if (Status fits = checkContext(context, info); !fits)
      return fits;
    auto read = readTokens(file, *model, tokenizerPath, info.words);
    if (!read)
      return read.error();
    tokens = std::move(*read);
    const int64_t whole = std::ssize(tokens.ids) + 1;
    if (context == 0)
      context = info.context ? std::min(info.context, whole) : whole;
    return checkMemoryOfSession(info, {.context = context});
  };
  auto compiled = compileWithProgress(*model, compiling, !quiet);
  if (!compiled)
    return fail(compiled.error());
  auto session = compiled->session({.context = context, .threads = parser.common.threads});
  if (!session)
    return fail(session.error());
  if (!quiet)
    noteContext(context, *model, compiled->info());
  if (tokens.leavesEnd && !quiet)
    note("the tokenizer ends texts with a mark, which is not scored");
  ProgressLine progress(!quiet);
  auto result =
      scoreTokens(*session, std::move(tokens.ids), tokens.bos,
                  [&](int64_t done, int64_t total) { progress.update("scoring", done, total); });
  progress.clear();
  if (!result)
    return fail(result.error());
  Status printed = report(table(*result, context), describe(*result, context), json);
  return printed ? exitOk : fail(printed.error());
}

} // namespace heddle::command
