// Text in, text out: a session with a tokenizer around it.
#pragma once

#include "frontend/session.h"
#include "frontend/tokenizers/tokenizer.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

struct GeneratedText {
  std::string text; ///< the new text, valid UTF-8
  Generated tokens;
};

/// Looks for texts in a text that comes in pieces.
class StopTexts {
public:
  explicit StopTexts(std::vector<std::string> texts);

  /// What can be given out now that `text` has come: nothing that may be the beginning of one of
  /// the texts, and nothing from one of them on.
  std::string push(std::string_view text);

  /// The end: what was kept back.
  std::string flush();

  bool found() const { return isFound; }

private:
  std::vector<std::string> texts;
  std::string kept;
  bool isFound = false;
};

/// Continues `prompt`. `onText` gets each new piece of text as soon as its characters are whole,
/// and returns whether to go on. `options.endTokens` are the tokenizer's own where there are none;
/// a text of `options.stop` ends it, also where it is cut across tokens, and is not given out.
/// Errors: those of `Tokenizer::encode` and `Session::generate`.
Result<GeneratedText> generateText(Session &session, const Tokenizer &tokenizer,
                                   std::string_view prompt, GenerateOptions options = {},
                                   const std::function<bool(std::string_view)> &onText = {});

/// How likely a model finds a text.
struct TextScore {
  std::vector<int32_t> ids;
  /// The natural logarithm of each id's probability after those before it in its window; NaN for
  /// the first of a window, which has none.
  std::vector<double> logLikelihoods;
  int64_t windows = 0;
  int64_t scored = 0; ///< ids that have a likelihood
  double sum = 0;     ///< of the likelihoods' logarithms

  double perplexity() const;
};

/// Scores `ids` in windows as long as the session's context, each on its own and, where `bos` is
/// not negative, after that id; tells `progress` how many of all ids it has gone past. Forgets what
/// the session held. Errors: those of `Session::prefill`.
Result<TextScore> scoreTokens(Session &session, std::vector<int32_t> ids, int32_t bos,
                              const std::function<void(int64_t, int64_t)> &progress = {});

} // namespace heddle
