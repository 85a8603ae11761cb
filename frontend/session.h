// A conversation with a model: its own cache, threads and position.
#pragma once

#include "frontend/sampler.h"
#include "runtime/executor.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct SessionOptions {
  int64_t context = 0; ///< positions of a sequence; 0: the model's own, or 2048 where it says none
  int threads = 0;     ///< 0: the cores this process may use
  int64_t slots = 1;   ///< sequences that can be held at once
  /// Longer inputs are run in pieces of this many tokens; 0: never. Nor are those of a model whose
  /// tokens see later ones (`ModelInfo::looksAhead`).
  int64_t chunk = 768;
};

/// New tokens for one sequence.
struct Prompt {
  int64_t slot = 0;
  std::span<const int32_t> ids;
};

/// The rows a caller wants logits for.
enum class LogitsOf {
  last, ///< the last token of every sequence
  all,  ///< every token
};

/// Scores of the next token, one row for each token asked for, in the order of the call. Good until
/// the session's next call.
struct Logits {
  std::span<const float> values;
  int64_t rows = 0;
  int64_t words = 0;

  std::span<const float> row(int64_t index) const {
    return values.subspan(static_cast<size_t>(index * words), static_cast<size_t>(words));
  }
};

struct GenerateOptions {
  int64_t tokens = 256; ///< new tokens at most
  SamplerOptions sampling = {};
  std::vector<int32_t> endTokens = {}; ///< ids that end a text; they are not given out
  std::vector<std::string> stop = {};  ///< texts that end a text; for `generateText`
  int64_t slot = 0;
  /// Gets how far the prompt is, in tokens of `total`: 0 at first, then after every phase of the
  /// program, of which each layer has some. A phase counts as its share of the tokens at hand. It
  /// must be quick.
  std::function<void(int64_t done, int64_t total)> onPrompt = {};
};

/// Why a generation ended.
enum class Ending {
  tokens,   ///< as many as asked for
  endToken, ///< the model ended the text
  stopText, ///< one of the texts that were to end it
  context,  ///< the sequence is as long as the session's context
  stopped,  ///< the callback said so
};

struct Generated {
  std::vector<int32_t> ids; ///< the new ones
  Ending ending = Ending::tokens;
};

namespace detail {
struct ModelState;
struct SessionState;
} // namespace detail

/// Sequences of one model, each in a slot, one call at a time. Sessions of one model are
/// independent of each other: each may be used by a thread of its own. Errors leave the sequences
/// as they were.
class Session {
public:
  Session(Session &&) noexcept;
  Session &operator=(Session &&) noexcept;
  ~Session();

  /// Adds `ids` to the sequence in slot 0. Errors (usage): no ids, one outside the vocabulary, a
  /// sequence longer than the context.
  Result<Logits> prefill(std::span<const int32_t> ids, LogitsOf wanted = LogitsOf::last);

  /// The same for several sequences at once, of any lengths, each in a slot of its own. Slots must
  /// differ.
  Result<Logits> prefill(std::span<const Prompt> prompts, LogitsOf wanted = LogitsOf::last);

  /// Adds one token to the sequence in slot 0.
  Result<Logits> step(int32_t id);
  /// Adds one token to each of the sequences in slots 0, 1, ...
  Result<Logits> step(std::span<const int32_t> ids);

  /// Adds `prompt`, then draws tokens one by one. `onToken` gets each new one as it is drawn and
  /// returns whether to go on. A prompt longer than the context is an error; at the end of the
  /// context generation ends. The repetition penalty counts the tokens of `prompt` and the new
  /// ones. Errors (usage): `options.stop` is not empty, since tokens alone have no text.
  Result<Generated> generate(std::span<const int32_t> prompt, const GenerateOptions &options,
                             const std::function<bool(int32_t)> &onToken = {});

  /// Sets what another batch of ids of the model holds for the sequence in `slot`: the source of an
  /// encoder-decoder. Every later call passes it.
  Status give(std::string_view input, std::span<const int32_t> ids, int64_t slot = 0);

  /// Tokens the sequence in `slot` has so far.
  int64_t position(int64_t slot = 0) const;
  int64_t context() const;
  int64_t slots() const;

  /// Forgets the tokens of `slot` from position `length` on.
  void truncate(int64_t length, int64_t slot = 0);
  /// Forgets all sequences.
  void reset();

  /// Bytes of the cache when full, and the most the activations have needed so far.
  int64_t cacheBytes() const;
  int64_t arenaBytes() const;

  /// What runs the model: modelled costs, profiles.
  runtime::Executor &executor();

private:
  friend struct detail::SessionState;
  explicit Session(std::unique_ptr<detail::SessionState> state);
  std::unique_ptr<detail::SessionState> state;
};

} // namespace heddle
