// heddle run: generates text.
#include "frontend/cli/options.h"
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
};

/// The result on standard output as it comes: text in whole characters, or ids with commas. Looks
/// for texts that end it.
class Printer {
public:
  /// Without a tokenizer ids are printed.
  Printer(const Tokenizer *tokenizer, bool printsIds, int32_t previous,
          std::vector<std::string> stop)
      : tokenizer(tokenizer), printsIds(printsIds || !tokenizer), previous(previous),
        stops(std::move(stop)) {}

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
    previous = id;
    const std::string text = characters.push(*piece);
    return putText(isNew ? stops.push(text) : text) && !stops.found();
  }

  bool hasPrinted() const { return !first; }

  /// Ends the text; with a line where a person or a list of ids needs one.
  Status end() {
    if (status)
      putText(stops.push(characters.flush()) + stops.flush());
    if (status && (printsIds || stdoutIsTerminal()))
      put("\n");
    return status;
  }

private:
  bool putText(const std::string &text) { return printsIds || put(text); }

  bool put(const std::string &text) {
    first = false;
    if (!text.empty())
      status = command::print(text);
    return bool(status);
  }

  const Tokenizer *tokenizer;
  bool printsIds;
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
  prompt->type_name("TEXT")->excludes(file)->excludes(ids);
  file->type_name("FILE")->excludes(ids);
  ids->type_name("IDS");
  app.add_option("--print", options.print, "text, or ids; ids where there is no tokenizer")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"text", "ids"}));
  parser.addNumber("--tokens", options.tokens, 0, 1 << 30, "new tokens, the prompt apart (256)");
  app.add_flag("--echo", options.echo, "print the prompt first");
  addSamplingOptions(parser, options.sampling);
  app.add_option("--stop", options.stop, "a text that ends the result; may be given several times")
      ->type_name("TEXT")
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

static void report(const Generated &generated, const Session &session, double seconds, bool quiet) {
  if (quiet)
    return;
  auto count = static_cast<int64_t>(generated.ids.size());
  if (generated.ending == Ending::context)
    note(fmt::format("the context of {} is full; stopped after {}",
                     counted(session.context(), "position"), counted(count, "new token")));
  else
    note(fmt::format("{} in {:.2f} s, {:.0f} a second", counted(count, "token"), seconds,
                     static_cast<double>(count) / std::max(seconds, 1e-9)));
}

static int generate(Session &session, const RunOptions &options, std::span<const int32_t> prompt,
                    const Tokenizer *tokenizer, std::span<const int64_t> modelEnds, bool quiet) {
  size_t echoed = options.echo ? 0 : prompt.size();
  int32_t before = echoed > 0 ? prompt[echoed - 1] : TextMarks::none;
  Printer printer(tokenizer, options.print == "ids", before, options.stop);
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
  auto begin = std::chrono::steady_clock::now();
  auto generated = printed ? session.generate(prompt, generation,
                                              [&](int32_t id) { return printer.add(id, true); })
                           : Result<Generated>(Generated{});
  std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (!generated && !printer.hasPrinted())
    return fail(generated.error());
  Status ended = printer.end();
  if (!ended)
    return fail(ended.error());
  if (!generated)
    return fail(generated.error());
  report(*generated, session, seconds.count(), quiet);
  return exitOk;
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
  auto prompt = promptIds(options, info.vocabulary, tokenizer->tokenizer.get(), tokenizer->whyNone,
                          model.checkpoint);
  if (!prompt)
    return prompt.error();
  const int64_t context = contextFor(options, info, prompt->size());
  if (Status fits = checkPrompt(prompt->size(), context); !fits)
    return fits.error();
  return Prepared{std::move(*tokenizer), std::move(*prompt), context};
}

int run(const Invocation &invocation) {
  Parser parser(invocation, "Generates text with a model.");
  parser.addModel();
  RunOptions options;
  addRunOptions(parser, options);
  if (auto code = parser.parse())
    return *code;

  auto model = parser.load(options.context);
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
