// Models and sessions, on top of the runtime's executor.
#include "frontend/model_state.h"
#include "runtime/text.h"

#include <algorithm>

namespace heddle {

namespace detail {

/// A batch of ids that is not driven by the session but passed along: what each slot was given.
struct Given {
  size_t input;
  std::vector<std::vector<int32_t>> idsOfSlot;
  std::vector<int32_t> ids; // of the call
  std::vector<runtime::Sequence> sequences;
};

using OnPrompt = std::function<void(int64_t done, int64_t total)>;

struct SessionState {
  std::shared_ptr<const ModelState> model;
  SessionOptions options;
  int64_t context = 0;
  std::unique_ptr<runtime::Executor> executor;
  std::optional<runtime::KvCache> cache;
  std::vector<int64_t> lengths; // of slots, where there is no cache
  std::vector<Given> given;
  runtime::Call call;

  // Kept from call to call, so that decoding takes no memory.
  std::vector<int32_t> ids;
  std::vector<runtime::Piece> pieces;
  std::vector<runtime::Sequence> sequences;
  std::vector<Prompt> stepped, part;
  std::vector<float> collected;
  int64_t fed = 0; // tokens of the prompts whose calls have ended

  static Result<Session> create(std::shared_ptr<const ModelState> model,
                                const SessionOptions &options);
  int64_t slots() const { return int64_t(lengths.size()); }
  int64_t length(int64_t slot) const { return cache ? cache->length(slot) : lengths[size_t(slot)]; }
  Status check(std::span<const Prompt> prompts) const;
  Result<Logits> feed(std::span<const Prompt> prompts, LogitsOf wanted,
                      const OnPrompt &onPrompt = {});
  Result<Logits> feedInChunks(std::span<const Prompt> prompts, LogitsOf wanted);
  Result<Logits> run(std::span<const Prompt> prompts, LogitsOf wanted);
  void passGiven(std::span<const Prompt> prompts);
};

//===-- Creation ------------------------------------------------------------------------------===//

static Result<int64_t> contextOf(const ModelInfo &info, int64_t asked) {
  int64_t context = asked ? asked : info.context ? info.context : 2048;
  if (context < 1)
    return usageError("context: needs at least 1 position, found " + std::to_string(context));
  const int64_t longest = info.longest;
  if (longest && context > longest) {
    if (asked)
      return usageError("context: the model's table has " + counted(longest, "position") +
                        ", found " + std::to_string(asked));
    context = longest;
  }
  return context;
}

Result<Session> SessionState::create(std::shared_ptr<const ModelState> model,
                                     const SessionOptions &options) {
  if (!model->notSessions.empty())
    return dataError(model->notSessions);
  if (options.slots < 1)
    return usageError("slots: needs at least 1, found " + std::to_string(options.slots));
  if (options.chunk < 0)
    return usageError("chunk: needs 0 or more tokens, found " + std::to_string(options.chunk));
  auto context = contextOf(model->info, options.context);
  if (!context)
    return context.error();
  auto state = std::make_unique<SessionState>();
  state->model = model;
  state->options = options;
  state->context = *context;
  state->lengths.resize(size_t(options.slots));
  for (size_t i = 0; i < model->inputs.size(); ++i)
    if (model->inputs[i].kind == ModelInput::Kind::ids && i != model->mainInput)
      state->given.push_back({i, std::vector<std::vector<int32_t>>(size_t(options.slots)), {}, {}});
  if (model->info.hasCache) {
    auto cache =
        runtime::KvCache::create(model->programs->prefill.program.cache, options.slots, *context);
    if (!cache)
      return cache.error();
    state->cache.emplace(std::move(*cache));
  }
  auto executor = runtime::Executor::create(model->programs, {.threads = options.threads});
  if (!executor)
    return executor.error();
  state->executor = std::move(*executor);
  return Session(std::move(state));
}

//===-- Calls ---------------------------------------------------------------------------------===//

Status SessionState::check(std::span<const Prompt> prompts) const {
  if (prompts.empty())
    return usageError("needs at least one sequence");
  for (size_t i = 0; i < prompts.size(); ++i) {
    const Prompt &prompt = prompts[i];
    if (prompt.slot < 0 || prompt.slot >= slots())
      return usageError("slot " + std::to_string(prompt.slot) + " of a session with " +
                        std::to_string(slots()));
    auto others = prompts.first(i);
    if (std::ranges::find(others, prompt.slot, &Prompt::slot) != others.end())
      return usageError("slot " + std::to_string(prompt.slot) + " comes twice in one call");
    if (prompt.ids.empty())
      return usageError("needs at least one token");
    int64_t past = cache ? length(prompt.slot) : 0;
    if (int64_t(prompt.ids.size()) > context - past)
      return usageError(counted(int64_t(prompt.ids.size()), "token") + " after " +
                        std::to_string(past) + " do not fit into a context of " +
                        std::to_string(context));
    for (int32_t id : prompt.ids)
      if (id < 0 || id >= model->info.vocabulary)
        return usageError("token id " + std::to_string(id) + " is not in the vocabulary of " +
                          std::to_string(model->info.vocabulary) + " words");
  }
  return {};
}

/// Sets the arguments for the batches that `give` filled, for the sequences of this call.
void SessionState::passGiven(std::span<const Prompt> prompts) {
  for (Given &batch : given) {
    batch.ids.clear();
    batch.sequences.clear();
    for (const Prompt &prompt : prompts) {
      const auto &ids = batch.idsOfSlot[size_t(prompt.slot)];
      batch.sequences.push_back(
          {int32_t(batch.ids.size()), int32_t(ids.size()), 0, int32_t(prompt.slot)});
      batch.ids.insert(batch.ids.end(), ids.begin(), ids.end());
    }
    int64_t shape[] = {int64_t(batch.ids.size())};
    call.tensor(batch.input, batch.ids.data(), shape);
    call.sequences(batch.input + 1, batch.sequences);
  }
}

Result<Logits> SessionState::run(std::span<const Prompt> prompts, LogitsOf wanted) {
  ids.clear();
  pieces.clear();
  sequences.clear();
  for (const Prompt &prompt : prompts) {
    pieces.push_back({int32_t(prompt.slot), int64_t(prompt.ids.size())});
    sequences.push_back({int32_t(ids.size()), int32_t(prompt.ids.size()), 0, int32_t(prompt.slot)});
    ids.insert(ids.end(), prompt.ids.begin(), prompt.ids.end());
  }
  if (cache) {
    if (Status status = cache->append(pieces, sequences); !status)
      return status.error();
    call.cache(*cache);
  }
  int64_t shape[] = {int64_t(ids.size())};
  call.tensor(model->mainInput, ids.data(), shape);
  call.sequences(model->mainInput + 1, sequences,
                 wanted == LogitsOf::all ? runtime::Wanted::all : runtime::Wanted::last);
  passGiven(prompts);
  if (Status status = executor->run(call); !status)
    return status.error();
  // An edited text may have a result of any number of rows.
  int64_t asked = wanted == LogitsOf::all ? int64_t(ids.size()) : int64_t(prompts.size());
  if (executor->result(0).shape[0] < asked)
    return dataError("the model gave " + std::to_string(executor->result(0).shape[0]) +
                     " rows of logits, " + std::to_string(asked) + " were asked for");
  if (cache)
    cache->commit(sequences);
  for (const Prompt &prompt : prompts)
    lengths[size_t(prompt.slot)] = int64_t(prompt.ids.size());
  const runtime::TensorView &result = executor->result(0);
  return Logits{{static_cast<const float *>(result.data), size_t(result.elements())},
                result.shape[0],
                result.shape[1]};
}

/// Runs sequences in calls of `options.chunk` tokens, so that the activations of long prompts do
/// not all exist at once. Short prompts share a call.
Result<Logits> SessionState::feedInChunks(std::span<const Prompt> prompts, LogitsOf wanted) {
  collected.clear();
  int64_t rows = 0;
  std::vector<int64_t> before;
  for (const Prompt &prompt : prompts)
    before.push_back(length(prompt.slot));
  size_t room = size_t(options.chunk);
  std::vector<bool> isLast; // piece of its prompt
  auto runPart = [&]() -> Status {
    auto logits = run(part, wanted);
    if (!logits)
      return logits.error();
    fed += int64_t(ids.size());
    const bool all = wanted == LogitsOf::all;
    const size_t found = all ? ids.size() : part.size();
    for (size_t row = 0; row < found; ++row)
      if (all || isLast[row]) {
        auto values = logits->row(int64_t(row));
        collected.insert(collected.end(), values.begin(), values.end());
        ++rows;
      }
    part.clear();
    isLast.clear();
    room = size_t(options.chunk);
    return {};
  };
  part.clear();
  for (const Prompt &prompt : prompts)
    for (size_t begin = 0; begin < prompt.ids.size();) {
      size_t count = std::min(room, prompt.ids.size() - begin);
      part.push_back({prompt.slot, prompt.ids.subspan(begin, count)});
      begin += count;
      room -= count;
      isLast.push_back(begin == prompt.ids.size());
      if (room > 0 && !(isLast.back() && &prompt == &prompts.back()))
        continue;
      if (Status status = runPart(); !status) {
        for (size_t i = 0; i < prompts.size(); ++i)
          cache->truncate(prompts[i].slot, before[i]);
        return status.error();
      }
    }
  return Logits{collected, rows, model->info.words};
}

Result<Logits> SessionState::feed(std::span<const Prompt> prompts, LogitsOf wanted,
                                  const OnPrompt &onPrompt) {
  if (Status status = check(prompts); !status)
    return status.error();
  int64_t tokens = 0;
  for (const Prompt &prompt : prompts)
    tokens += int64_t(prompt.ids.size());
  fed = 0;
  // Nothing of this call may be watched by after it, not even where the caller's function throws.
  struct Watch {
    runtime::Executor *executor = nullptr;
    ~Watch() {
      if (executor)
        executor->watch({});
    }
  } watch;
  if (onPrompt) {
    onPrompt(0, tokens);
    watch.executor = executor.get();
    executor->watch([&](int64_t done, int64_t phases) {
      onPrompt(fed + int64_t(ids.size()) * done / phases, tokens);
    });
  }
  bool inChunks = cache && options.chunk && tokens > options.chunk && !model->info.looksAhead;
  return inChunks ? feedInChunks(prompts, wanted) : run(prompts, wanted);
}

} // namespace detail

//===-- Models --------------------------------------------------------------------------------===//

Status checkMemoryOfSession(const ModelInfo &info, const SessionOptions &options) {
  auto context = detail::contextOf(info, options.context);
  if (!context)
    return context.error();
  return info.hasCache ? runtime::KvCache::check(info.cache, options.slots, *context) : Status();
}

const ModelInfo &Model::info() const { return state->info; }
const std::vector<ModelInput> &Model::inputs() const { return state->inputs; }
Result<Session> Model::session(const SessionOptions &options) const {
  return detail::SessionState::create(state, options);
}
std::shared_ptr<const runtime::ProgramSet> Model::programs() const {
  return {state, state->programs.get()}; // keeps code and weights too
}

//===-- Sessions ------------------------------------------------------------------------------===//

Session::Session(std::unique_ptr<detail::SessionState> state) : state(std::move(state)) {}
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;
Session::~Session() = default;

Result<Logits> Session::prefill(std::span<const int32_t> ids, LogitsOf wanted) {
  Prompt prompt{0, ids};
  return state->feed({&prompt, 1}, wanted);
}

Result<Logits> Session::prefill(std::span<const Prompt> prompts, LogitsOf wanted) {
  return state->feed(prompts, wanted);
}

Result<Logits> Session::step(int32_t id) { return step(std::span(&id, 1)); }

Result<Logits> Session::step(std::span<const int32_t> ids) {
  if (!state->cache)
    return usageError("step: the model keeps no cache; give each sequence as a whole");
  state->stepped.clear();
  for (size_t i = 0; i < ids.size(); ++i)
    state->stepped.push_back({int64_t(i), ids.subspan(i, 1)});
  return state->feed(state->stepped, LogitsOf::last);
}

Result<Generated> Session::generate(std::span<const int32_t> prompt, const GenerateOptions &options,
                                    const std::function<bool(int32_t)> &onToken) {
  if (!state->cache)
    return usageError("generate: the model keeps no cache");
  if (options.tokens < 0)
    return usageError("tokens: needs 0 or more, found " + std::to_string(options.tokens));
  if (!options.stop.empty())
    return usageError("stop: tokens alone have no text; generateText looks for these");
  auto sampler = Sampler::create(options.sampling);
  if (!sampler)
    return sampler.error();
  std::vector<int32_t> before(prompt.begin(), prompt.end());
  Prompt next{options.slot, prompt};
  auto logits = state->feed({&next, 1}, LogitsOf::last, options.onPrompt);
  if (!logits)
    return logits.error();
  Generated generated;
  while (int64_t(generated.ids.size()) < options.tokens) {
    auto token = sampler->sample(logits->row(0), before);
    if (!token)
      return token.error();
    if (std::ranges::find(options.endTokens, *token) != options.endTokens.end()) {
      generated.ending = Ending::endToken;
      return generated;
    }
    generated.ids.push_back(*token);
    before.push_back(*token);
    if (onToken && !onToken(*token)) {
      generated.ending = Ending::stopped;
      return generated;
    }
    if (int64_t(generated.ids.size()) == options.tokens)
      break;
    if (position(options.slot) == state->context) {
      generated.ending = Ending::context;
      return generated;
    }
    next.ids = std::span(&generated.ids.back(), 1);
    logits = state->feed({&next, 1}, LogitsOf::last);
    if (!logits)
      return logits.error();
  }
  return generated;
}

Status Session::give(std::string_view input, std::span<const int32_t> ids, int64_t slot) {
  if (slot < 0 || slot >= slots())
    return usageError("slot " + std::to_string(slot) + " of a session with " +
                      std::to_string(slots()));
  for (detail::Given &batch : state->given) {
    const ModelInput &argument = state->model->inputs[batch.input];
    if (argument.name != input)
      continue;
    for (int32_t id : ids)
      if (id < 0 || id >= argument.vocabulary)
        return usageError("token id " + std::to_string(id) + " is not in the vocabulary of " +
                          std::to_string(argument.vocabulary) + " words");
    batch.idsOfSlot[size_t(slot)].assign(ids.begin(), ids.end());
    return {};
  }
  return usageError("the model has no other batch of ids called '" + std::string(input) + "'");
}

int64_t Session::position(int64_t slot) const {
  return slot >= 0 && slot < slots() ? state->length(slot) : 0;
}
int64_t Session::context() const { return state->context; }
int64_t Session::slots() const { return state->slots(); }

void Session::truncate(int64_t length, int64_t slot) {
  if (slot < 0 || slot >= slots() || length < 0 || length >= position(slot))
    return;
  if (state->cache)
    state->cache->truncate(slot, length);
  state->lengths[size_t(slot)] = length;
}

void Session::reset() {
  if (state->cache)
    state->cache->reset();
  std::ranges::fill(state->lengths, 0);
}

int64_t Session::cacheBytes() const { return state->cache ? state->cache->bytes() : 0; }
int64_t Session::arenaBytes() const { return state->executor->arenaBytes(); }
runtime::Executor &Session::executor() { return *state->executor; }

} // namespace heddle
