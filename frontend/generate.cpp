// Tokens of a session as text.
#include "frontend/generate.h"

#include "frontend/tokenizers/utf8_stream.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

namespace heddle {

StopTexts::StopTexts(std::vector<std::string> all) : texts(std::move(all)) {
  std::erase(texts, "");
}

std::string StopTexts::push(std::string_view text) {
  if (isFound)
    return "";
  kept += text;
  size_t first = kept.size();
  for (const std::string &stop : texts)
    if (const size_t at = kept.find(stop); at < first) {
      first = at;
      isFound = true;
    }
  // The longest end that is the beginning of one.
  for (const std::string &stop : texts)
    for (size_t length = std::min(stop.size() - 1, kept.size()); !isFound && length > 0; --length)
      if (kept.ends_with(std::string_view(stop).substr(0, length))) {
        first = std::min(first, kept.size() - length);
        break;
      }
  std::string given = kept.substr(0, first);
  kept.erase(0, first);
  return given;
}

std::string StopTexts::flush() { return isFound ? "" : std::exchange(kept, {}); }

Result<GeneratedText> generateText(Session &session, const Tokenizer &tokenizer,
                                   std::string_view prompt, GenerateOptions options,
                                   const std::function<bool(std::string_view)> &onText) {
  auto ids =
      tokenizer.encode(prompt, session.position(options.slot) == 0 && tokenizer.marks().addsBos);
  if (!ids)
    return ids.error();
  if (options.endTokens.empty())
    options.endTokens = tokenizer.marks().ends;

  GeneratedText generated;
  Utf8Stream characters;
  StopTexts stops(std::exchange(options.stop, {}));
  std::optional<Error> failure;
  int32_t previous = tokenizer.lastOf(*ids);
  auto give = [&](const std::string &text) {
    generated.text += text;
    return text.empty() || !onText || onText(text);
  };
  auto tokens = session.generate(*ids, options, [&](int32_t id) {
    auto piece = tokenizer.piece(previous, id);
    previous = tokenizer.following(previous, id);
    if (!piece) {
      failure = piece.error();
      return false;
    }
    return give(stops.push(characters.push(*piece))) && !stops.found();
  });
  if (failure)
    return *failure;
  if (!tokens)
    return tokens.error();
  give(stops.push(characters.flush()));
  give(stops.flush());
  generated.tokens = std::move(*tokens);
  if (stops.found())
    generated.tokens.ending = Ending::stopText;
  return generated;
}

double TextScore::perplexity() const {
  return scored ? std::exp(-sum / static_cast<double>(scored))
                : std::numeric_limits<double>::quiet_NaN();
}

/// log softmax(logits)[token], in f64.
static double logLikelihood(std::span<const float> logits, int32_t token) {
  const double largest = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits)
    sum += std::exp(static_cast<double>(logit) - largest);
  return static_cast<double>(logits[static_cast<size_t>(token)]) - largest - std::log(sum);
}

Result<TextScore> scoreTokens(Session &session, std::vector<int32_t> ids, int32_t bos,
                              const std::function<void(int64_t, int64_t)> &progress) {
  constexpr size_t mostRows = 64; // logits of a row may be a megabyte
  TextScore score;
  score.ids = std::move(ids);
  score.logLikelihoods.assign(score.ids.size(), std::numeric_limits<double>::quiet_NaN());
  const bool hasBos = bos >= 0;
  const auto context = static_cast<size_t>(session.context());
  // The last token of a window is predicted, so it need not go in.
  const size_t length = hasBos ? context : context + 1;
  for (size_t begin = 0; begin < score.ids.size(); begin += length, ++score.windows) {
    session.reset();
    const size_t end = std::min(begin + length, score.ids.size());
    std::vector<int32_t> window(score.ids.begin() + static_cast<ptrdiff_t>(begin),
                                score.ids.begin() + static_cast<ptrdiff_t>(end));
    const size_t first = hasBos ? begin : begin + 1; // the id that the first row predicts
    if (hasBos)
      window.insert(window.begin(), bos);
    window.pop_back();
    for (size_t at = 0; at < window.size(); at += mostRows) {
      const std::span<const int32_t> chunk =
          std::span(window).subspan(at, std::min(mostRows, window.size() - at));
      const auto logits = session.prefill(chunk, LogitsOf::all);
      if (!logits)
        return logits.error();
      for (size_t row = 0; row < chunk.size(); ++row) {
        const size_t place = first + at + row;
        const int32_t id = score.ids[place];
        if (id < 0 || id >= logits->words)
          return usageError("token id " + std::to_string(id) + " is outside the vocabulary of " +
                            std::to_string(logits->words) + " words");
        score.logLikelihoods[place] = logLikelihood(logits->row(static_cast<int64_t>(row)), id);
        score.sum += score.logLikelihoods[place];
        ++score.scored;
      }
      if (progress)
        progress(static_cast<int64_t>(first + at + chunk.size()), std::ssize(score.ids));
    }
  }
  return score;
}

} // namespace heddle
