#include "frontend/tokenizers/trie.h"
#include "frontend/tokenizers/utf8.h"
#include "frontend/tokenizers/word_model.h"

#include <algorithm>
#include <limits>

namespace heddle {

namespace {

/// What a character that is no token costs beyond the least likely token.
constexpr double unknownPenalty = 10;

class UnigramModel final : public WordModel {
public:
  UnigramModel(SharedVocabulary all, const UnigramRules &rules)
      : vocabulary(std::move(all)), rules(rules) {
    std::vector<std::pair<std::string_view, int32_t>> words;
    double least = std::numeric_limits<double>::infinity(), most = -least;
    for (int32_t id = 0; id < vocabulary->size(); ++id) {
      const Token &token = (*vocabulary)[id];
      if (token.kind == TokenKind::normal) {
        least = std::min(least, token.score);
        most = std::max(most, token.score);
      }
      if (token.kind == TokenKind::normal || token.kind == TokenKind::userDefined)
        words.emplace_back(token.text, id);
    }
    const bool any = least <= most;
    unknownScore = rounded((any ? least : 0) - unknownPenalty);
    mostScore = any ? most : 0;
    trie = Trie(std::move(words));
  }

  void tokenize(std::string_view text, std::vector<int32_t> &tokens) const override {
    const std::vector<Step> best = bestSteps(text);
    std::vector<std::pair<size_t, int32_t>> path; // ends and tokens, from the back
    for (size_t end = text.size(); end > 0; end = best[end].start)
      path.emplace_back(end, best[end].token);
    size_t start = 0;
    bool afterUnknown = false;
    for (auto step = path.rbegin(); step != path.rend(); ++step) {
      const std::string_view piece = text.substr(start, step->first - start);
      start = step->first;
      if (step->second != Vocabulary::none) {
        tokens.push_back(step->second);
        afterUnknown = false;
      } else {
        emitUnknown(piece, afterUnknown, tokens);
      }
    }
  }

private:
  /// The best way to a place in the text: its last token and where that starts.
  struct Step {
    double score = 0;
    size_t start = 0;
    int32_t token = Vocabulary::none;
    bool reached = false;
  };

  double rounded(double value) const {
    return rules.singlePrecision ? static_cast<double>(static_cast<float>(value)) : value;
  }

  double scoreOf(int32_t id, size_t length) const {
    const Token &token = (*vocabulary)[id];
    // Longer than whatever it could be divided into.
    return token.kind == TokenKind::userDefined
               ? rounded(static_cast<double>(length) * mostScore - 0.1)
               : token.score;
  }

  std::vector<Step> bestSteps(std::string_view text) const {
    std::vector<Step> best(text.size() + 1);
    best[0].reached = true;
    for (size_t at = 0; at < text.size();) {
      const size_t character = characterLength(text.substr(at));
      bool hasCharacter = false;
      const double before = best[at].score;
      const auto offer = [&](size_t length, int32_t token, double score) {
        Step &step = best[at + length];
        const double sum = rounded(before + score);
        if (!step.reached || sum > step.score)
          step = {sum, at, token, true};
      };
      trie.forEachPrefix(text.substr(at), [&](size_t length, int32_t token) {
        offer(length, token, scoreOf(token, length));
        hasCharacter |= length == character;
      });
      if (!hasCharacter)
        offer(character, Vocabulary::none, unknownScore);
      at += character;
    }
    return best;
  }

  void emitUnknown(std::string_view piece, bool &afterUnknown, std::vector<int32_t> &tokens) const {
    const auto byteOf = [&](char c) { return vocabulary->bytes()[static_cast<unsigned char>(c)]; };
    const auto isMissing = [&](char c) { return byteOf(c) == Vocabulary::none; };
    if (rules.fallback.bytes && std::ranges::none_of(piece, isMissing)) {
      std::ranges::transform(piece, std::back_inserter(tokens), byteOf);
      afterUnknown = false;
    } else if (rules.fallback.unknown) {
      if (!(afterUnknown && rules.fallback.fuse))
        tokens.push_back(*rules.fallback.unknown);
      afterUnknown = true;
    }
  }

  SharedVocabulary vocabulary;
  UnigramRules rules;
  Trie trie;
  double unknownScore, mostScore;
};

} // namespace

std::unique_ptr<WordModel> unigramModel(SharedVocabulary vocabulary, const UnigramRules &rules) {
  return std::make_unique<UnigramModel>(std::move(vocabulary), rules);
}

} // namespace heddle
