// heddle run: generates text.
#include "frontend/cli/options.h"
#include "frontend/cli/output_file.h"
#include "frontend/cli/terminal.h"
#include "frontend/generate.h"
#include "frontend/tokenizers/chat.h"
#include "frontend/tokenizers/utf8_stream.h"
#include "runtime/text.h"

#include "fmt/format.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace heddle::command {

namespace {

struct RunOptions {
  std::string prompt, promptFile;
  std::optional<std::string> promptIds;
  std::optional<std::string> print;
  int64_t tokens = 256;
  bool echo = false;
  SamplerOptions sampling;
  std::vector<std::string> stop;
  bool chat = false;
  std::string system;
  int64_t context = 0;
  std::string tokenizer;
  std::string json;
};

/// The result on standard output as it comes, or collected: text in whole characters, or ids with
/// commas. Looks for texts that end it.
class Printer {
public:
  /// Without a tokenizer ids are printed; with `collects`, nothing is.
  Printer(const Tokenizer *tokenizer, bool printsIds, bool collects, int32_t previous,
          std::vector<std::string> stop)
      : tokenizer(tokenizer), printsIds((printsIds && !collects) || !tokenizer), collects(collects),
        previous(previous), stops(std::move(stop)) {}

  /// Whether to go on. A stop text counts only where `isNew`.
  bool add(int32_t id, bool isNew) {
    if (printsIds && !put((first ? "" : ",") + std::to_string(id)))
      return false;
    if (!tokenizer)
      return true;
    auto piece = tokenizer->piece(previous, id);
    if (!piece) {
      status = piece.error();
      return false;
    }
    previous = tokenizer->following(previous, id);
    const std::string text = characters.push(*piece);
    return putText(isNew ? stops.push(text) : text) && !stops.found();
  }

  bool hasPrinted() const { return !first; }
  /// Whether a text ended it.
  bool wasStopped() const { return stops.found(); }
  /// The text so far; null where there is no tokenizer.
  const std::string *text() const { return tokenizer ? &collected : nullptr; }

  /// Ends the text; with a line where a person or a list of ids needs one.
  Status end() {
    if (status)
      putText(stops.push(characters.flush()) + stops.flush());
    if (status && !collects && (printsIds || stdoutIsTerminal()))
      put("\n");
    return status;
  }

private:
  bool putText(const std::string &text) {
    collected += text;
    return printsIds || put(text);
  }

  bool put(const std::string &text) {
    first = false;
    if (!text.empty() && !collects)
      status = command::print(text);
    return bool(status);
  }

  const Tokenizer *tokenizer;
  bool printsIds, collects;
  std::string collected;
  int32_t previous;
  Utf8Stream characters;
  StopTexts stops;
  bool first = true;
  Status status;
};

} // namespace

static void addSamplingOptions(Parser &parser, SamplerOptions &sampling) {
  parser.addNumber("--temperature", sampling.temperature, 0, 1e6,
                   "0: always the likeliest token; higher is more varied (0.8)", "T");
  parser.addNumber("--top-k", sampling.topK, 0, 1 << 30,
                   "choose among so many likeliest tokens; 0: all (0)", "K");
  parser.addNumber("--top-p", sampling.topP, 1e-9, 1,
                   "choose among the likeliest tokens of this joint probability (1)", "P");
  parser.addNumber("--min-p", sampling.minP, 0, 0.999999,
                   "choose among tokens with this share of the likeliest's probability (0)", "P");
  parser.addNumber("--repetition-penalty", sampling.repetitionPenalty, 1e-3, 1e3,
                   "above 1: tokens that were there before become less likely (1)", "X");
  parser.addNumber("--seed", sampling.seed, 0, UINT64_MAX, "of the choice among tokens (0)");
}

static void addRunOptions(Parser &parser, RunOptions &options) {
  CLI::App &app = parser.app();
  auto *prompt = app.add_option("--prompt", options.prompt, "the beginning of the text");
  auto *file = app.add_option("--prompt-file", options.promptFile,
                              "a file that holds it (- is standard input)");
  auto *ids =
      app.add_option("--prompt-ids", options.promptIds, "its token ids, all of them: 1,403,407");
  parser.reads(options.promptFile);
  prompt->type_name("TEXT")->excludes(file)->excludes(ids);
  file->type_name("FILE")->excludes(ids);
  ids->type_name("IDS");
  app.add_option("--print", options.print, "text, or ids; ids where there is no tokenizer")
      ->type_name("WHAT")
      ->check(oneOf({"text", "ids"}));
  parser.addNumber("--tokens", options.tokens, 0, 1 << 30, "new tokens, the prompt apart (256)");
  app.add_flag("--echo", options.echo, "print the prompt first");
  addSamplingOptions(parser, options.sampling);
  app.add_option("--stop", options.stop, "a text that ends the result; may be given several times")
      ->type_name("TEXT")
      ->check([](const std::string &text) {
        return text.empty() ? "expected a text of one character at least" : "";
      })
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  auto *chat =
      app.add_flag("--chat", options.chat, "the prompt is said to the model by its chat template");
  chat->excludes(ids);
  app.add_option("--system", options.system, "with --chat: what the model is told beforehand")
      ->type_name("TEXT")
      ->needs(chat);
  parser.addNumber("--context", options.context, 1, 1 << 30,
                   "positions of the sequence; the model's own by default");
  app.add_option("--tokenizer", options.tokenizer, "the tokenizer; found beside the checkpoint")
      ->type_name("FILE");
}

/// The ids of a conversation that begins with the prompt. Its template writes all marks itself.
static Result<std::vector<int32_t>>
conversationIds(const RunOptions &options, const Tokenizer &tokenizer, const std::string &prompt) {
  std::vector<ChatMessage> messages;
  if (!options.system.empty())
    messages.push_back({"system", options.system});
  messages.push_back({"user", prompt});
  auto text = writeConversation(tokenizer, messages);
  if (!text)
    return text.error();
  return tokenizer.encode(*text, false);
}

/// The ids of `--prompt-ids`.
static Result<std::vector<int32_t>> listedIds(const std::string &text, int64_t vocabulary) {
  auto numbers = readNumbers("--prompt-ids", text, 0, INT32_MAX);
  if (!numbers)
    return numbers.error();
  for (int64_t id : *numbers)
    if (vocabulary && id >= vocabulary) // without one it is no language model, which is told later
      return usageError(fmt::format(
          "--prompt-ids: {} is outside the model's vocabulary of {} words", id, vocabulary));
  return std::vector<int32_t>(numbers->begin(), numbers->end());
}

/// The ids the model is given: those of the prompt after the mark that begins a text, or as listed.
static Result<std::vector<int32_t>> promptIds(const RunOptions &options, int64_t vocabulary,
                                              const Tokenizer *tokenizer,
                                              const std::string &whyNone,
                                              const std::optional<Checkpoint> &checkpoint) {
  if (options.promptIds)
    return listedIds(*options.promptIds, vocabulary);
  std::string text = options.prompt;
  if (!options.promptFile.empty()) {
    auto read = readText(options.promptFile);
    if (!read)
      return read.error();
    text = std::move(*read);
  }
  if (options.chat && !tokenizer)
    return dataError("a conversation needs a tokenizer: " + whyNone);
  if (options.chat)
    return conversationIds(options, *tokenizer, text);
  if (tokenizer) {
    // Where there is nothing else to begin with, the mark is used that some models do without.
    const bool withBos =
        tokenizer->marks().addsBos || (text.empty() && tokenizer->bos() != TextMarks::none);
    return tokenizer->encode(text, withBos);
  }
  if (!text.empty())
    return dataError("a prompt needs a tokenizer: " + whyNone);
  if (!checkpoint || !checkpoint->beginToken)
    return std::vector<int32_t>{1}; // the beginning of a text in the vocabularies of LLaMA
  const int64_t begin = *checkpoint->beginToken;
  if (begin < 0 || begin >= checkpoint->config.vocabulary)
    return dataError(fmt::format("{}: the id {} that begins a text is outside its vocabulary of {} "
                                 "words; give the first ids with --prompt-ids",
                                 checkpoint->path, begin, checkpoint->config.vocabulary));
  return std::vector<int32_t>{static_cast<int32_t>(begin)};
}

/// Whether the prompt fits into the session that is asked for.
static Status checkPrompt(size_t prompt, int64_t context) {
  if (static_cast<int64_t>(prompt) <= context)
    return {};
  return dataError(fmt::format(
      "the prompt has {}, the context {}; shorten the one or lengthen the other by --context",
      counted(static_cast<int64_t>(prompt), "token"), counted(context, "position")));
}

/// Positions the session needs: no more than the work asks for, unless the user does.
static int64_t contextFor(const RunOptions &options, const ModelInfo &info, size_t prompt) {
  if (options.context)
    return options.context;
  int64_t needed = static_cast<int64_t>(prompt) + options.tokens;
  return info.context ? std::min(info.context, needed) : needed;
}

namespace {

/// How long a generation took. The first new token follows from the prompt, each other one from
/// the one before.
class Speed {
public:
  using Clock = std::chrono::steady_clock;

  explicit Speed(size_t prompt) : prompt(static_cast<int64_t>(prompt)) {}
  /// To be called when there is a new token, and at the end.
  void addToken() {
    last = Clock::now();
    if (count++ == 0)
      first = last;
  }
  void end() {
    if (count == 0)
      first = last = Clock::now();
  }

  std::string text() const {
    std::string text = part(counted(prompt, "prompt token"), prompt, promptSeconds());
    return count > 1 ? text + "; " + part(counted(count - 1, "more token"), count - 1, seconds())
                     : text;
  }
  Json json() const {
    auto told = [](int64_t tokens, double taken) {
      return Json::object(
          {{"tokens", tokens}, {"seconds", taken}, {"tokens_per_second", rate(tokens, taken)}});
    };
    return Json::object({{"prompt", told(prompt, promptSeconds())},
                         {"after_first", count > 1 ? told(count - 1, seconds()) : Json::null()}});
  }

private:
  static double rate(int64_t tokens, double taken) {
    return static_cast<double>(tokens) / std::max(taken, 1e-9);
  }
  static std::string part(const std::string &what, int64_t tokens, double taken) {
    return fmt::format("{} in {:.2f} s, {:.0f} a second", what, taken, rate(tokens, taken));
  }
  double promptSeconds() const { return std::chrono::duration<double>(first - begin).count(); }
  double seconds() const { return std::chrono::duration<double>(last - first).count(); }

  int64_t prompt, count = 0;
  Clock::time_point begin = Clock::now(), first = begin, last = begin;
};

} // namespace

/// Says how it went, on standard error.
static void tell(const Generated &generated, const Session &session, const Speed &speed) {
  if (generated.ending == Ending::context)
    note(fmt::format("the context of {} is full; stopped after {}",
                     counted(session.context(), "position"),
                     counted(static_cast<int64_t>(generated.ids.size()), "new token")));
  note(speed.text());
}

static std::string_view nameOf(Ending ending) {
  switch (ending) {
  case Ending::tokens:
    return "tokens";
  case Ending::endToken:
    return "end";
  case Ending::context:
    return "context";
  case Ending::stopText:
  case Ending::stopped:
    break;
  }
  return "stop";
}

static Json describe(const Generated &generated, const Speed &speed, const Printer &printer) {
  const std::vector<Json> ids(generated.ids.begin(), generated.ids.end());
  const Ending ending = printer.wasStopped() ? Ending::stopText : generated.ending;
  return Json::object({{"text", printer.text() ? Json(*printer.text()) : Json::null()},
                       {"ids", Json::array(ids)},
                       {"ending", std::string(nameOf(ending))},
                       {"speed", speed.json()}});
}

static int generate(Session &session, const RunOptions &options, std::span<const int32_t> prompt,
                    const Tokenizer *tokenizer, std::span<const int64_t> modelEnds, bool quiet) {
  size_t echoed = options.echo ? 0 : prompt.size();
  const int32_t before = tokenizer ? tokenizer->lastOf(prompt.first(echoed)) : TextMarks::none;
  const bool asJson = options.json == "-";
  Printer printer(tokenizer, options.print == "ids", asJson, before, options.stop);
  GenerateOptions generation{.tokens = options.tokens, .sampling = options.sampling};
  if (tokenizer) { // ids are all shown, the last one too
    generation.endTokens = tokenizer->marks().ends;
    for (const int64_t id : modelEnds) // one outside the vocabulary never comes
      if (id >= 0 && id <= INT32_MAX)
        generation.endTokens.push_back(static_cast<int32_t>(id));
  }
  bool printed = true;
  for (size_t i = echoed; printed && i < prompt.size(); ++i)
    printed = printer.add(prompt[i], false);
  // A line that is drawn would wipe an echo that stands there.
  ProgressLine progress(!quiet && !(printer.hasPrinted() && stdoutIsTerminal()));
  generation.onPrompt = [&](int64_t done, int64_t total) {
    progress.update("reading the prompt", done, total);
  };
  Speed speed(prompt.size());
  auto generated = printed ? session.generate(prompt, generation,
                                              [&](int32_t id) {
                                                progress.clear();
                                                speed.addToken();
                                                return printer.add(id, true);
                                              })
                           : Result<Generated>(Generated{});
  speed.end();
  progress.clear();
  if (!generated && !printer.hasPrinted())
    return fail(generated.error());
  Status ended = printer.end();
  if (!ended)
    return fail(ended.error());
  if (!generated)
    return fail(generated.error());
  if (!quiet)
    tell(*generated, session, speed);
  if (options.json.empty())
    return exitOk;
  Status written = writeFile(options.json, describe(*generated, speed, printer).str());
  return written ? exitOk : fail(written.error());
}

namespace {

/// What a run needs beside the compiled model.
struct Prepared {
  FoundTokenizer tokenizer;
  std::vector<int32_t> prompt;
  int64_t context = 0;
};

} // namespace

/// What can be found out, and be wrong, before the model is compiled.
static Result<Prepared> prepare(const RunOptions &options, const LoadedModel &model,
                                const ModelInfo &info, bool quiet) {
  if (Status fits = checkContext(options.context, info); !fits)
    return fits.error();
  auto tokenizer = loadTokenizer(model, options.tokenizer, info.words);
  if (!tokenizer)
    return tokenizer.error();
  if (!tokenizer->tokenizer && (!options.stop.empty() || options.print == "text"))
    return dataError(fmt::format("{} needs a tokenizer: {}",
                                 options.stop.empty() ? "--print text" : "--stop",
                                 tokenizer->whyNone));
  if (model.checkpoint && !tokenizer->tokenizer && !options.print && !quiet)
    note("prints ids: " + tokenizer->whyNone);
  const bool isText = tokenizer->tokenizer && !options.promptIds && !options.chat;
  if (isText && tokenizer->tokenizer->marks().addsEos && !quiet)
    note("the tokenizer ends texts with a mark; a prompt goes on, and gets none");
  auto prompt = promptIds(options, info.vocabulary, tokenizer->tokenizer.get(), tokenizer->whyNone,
                          model.checkpoint);
  if (!prompt)
    return prompt.error();
  if (prompt->empty())
    return usageError("there is nothing to begin with, since the tokenizer has no mark that begins "
                      "texts; give a --prompt");
  const int64_t context = contextFor(options, info, prompt->size());
  if (Status fits = checkPrompt(prompt->size(), context); !fits)
    return fits.error();
  if (Status fits = checkMemoryOfSession(info, {.context = context}); !fits)
    return fits.error();
  return Prepared{std::move(*tokenizer), std::move(*prompt), context};
}

int run(const Invocation &invocation) {
  Parser parser(invocation, "Generates text with a model.");
  parser.addModel();
  RunOptions options;
  addRunOptions(parser, options);
  parser.addJson(options.json);
  if (auto code = parser.parse())
    return *code;

  auto model = parser.load(options.context, /*tellsRemarks=*/true);
  if (!model)
    return fail(model.error());
  const bool quiet = parser.common.quiet;
  Prepared prepared;
  CompileOptions compiling = parser.common.compileOptions();
  compiling.check = [&](const ModelInfo &info) -> Status {
    auto ready = prepare(options, *model, info, quiet);
    if (!ready)
      return ready.error();
    prepared = std::move(*ready);
    return {};
  };
  auto compiled = compileWithProgress(*model, compiling, !quiet);
  if (!compiled)
    return fail(compiled.error());
  auto session = compiled->session({.context = prepared.context, .threads = parser.common.threads});
  if (!session)
    return fail(session.error());
  if (!quiet)
    noteContext(options.context, *model, compiled->info());
  std::span<const int64_t> ends;
  if (model->checkpoint)
    ends = model->checkpoint->endTokens;
  return generate(*session, options, prepared.prompt, prepared.tokenizer.tokenizer.get(), ends,
                  quiet);
}

} // namespace heddle::command
