#include "frontend/tokenizers/merging.h"
#include "frontend/tokenizers/trie.h"
#include "frontend/tokenizers/word_model.h"

#include <algorithm>
#include <functional>

namespace heddle {

namespace {

class ScoreModel final : public WordModel {
public:
  ScoreModel(SharedVocabulary all, const ScoreRules &rules)
      : vocabulary(std::move(all)), rules(rules) {
    std::vector<std::pair<std::string_view, int32_t>> userDefined;
    for (int32_t id = 0; id < vocabulary->size(); ++id) {
      const Token &token = (*vocabulary)[id];
      hasUnused |= token.kind == TokenKind::unused;
      if (!isText(token))
        continue;
      ids.try_emplace(token.text, id); // of twins, the first
      longest = std::max(longest, token.text.size());
      if (token.kind == TokenKind::userDefined && rules.findsUserDefined)
        userDefined.emplace_back(token.text, id);
    }
    undivided = Trie(std::move(userDefined));
    std::vector<double> scores;
    for (const auto &[text, id] : ids)
      scores.push_back((*vocabulary)[id].score);
    std::ranges::sort(scores, std::greater());
    scores.erase(std::ranges::unique(scores).begin(), scores.end());
    ranks.resize(static_cast<size_t>(vocabulary->size()));
    for (const auto &[text, id] : ids)
      ranks[static_cast<size_t>(id)] = static_cast<uint32_t>(
          std::ranges::lower_bound(scores, (*vocabulary)[id].score, std::greater()) -
          scores.begin());
  }

  void tokenize(std::string_view text, std::vector<int32_t> &tokens) const override {
    Merging merging;
    merging.reserve(text.size());
    for (size_t at = 0; at < text.size();)
      at += cut(text, at, merging);
    Halves halves;
    merging.run(static_cast<uint32_t>(text.size()),
                [&](const Merging::Pair &pair) { return join(text, pair, halves); });
    bool afterUnknown = false;
    merging.forEach([&](uint32_t begin, uint32_t end, int32_t token) {
      emit(text.substr(begin, end - begin), token, halves, afterUnknown, tokens);
    });
  }

private:
  /// Of unused words that were made on the way to others, the length of the left half.
  using Halves = std::unordered_map<std::string_view, size_t>;

  static bool isText(const Token &token) {
    return !token.text.empty() && token.kind != TokenKind::control &&
           token.kind != TokenKind::unknown && token.kind != TokenKind::byte;
  }

  int32_t find(std::string_view text) const {
    const auto found = ids.find(text);
    return found == ids.end() ? Merging::noToken : found->second;
  }

  /// Appends the piece at `at`: the word that is never divided or the character. Answers with its
  /// length.
  size_t cut(std::string_view text, size_t at, Merging &merging) const {
    const auto start = static_cast<uint32_t>(at);
    if (const Trie::Match match = undivided.longestPrefix(text.substr(at)); match.length) {
      merging.append(start, match.number, false);
      return match.length;
    }
    const size_t length =
        at == 0 && rules.firstByteAlone ? 1 : rules.characterLength(text.substr(at));
    const int32_t token = find(text.substr(at, length));
    merging.append(start, token, token != Merging::noToken || rules.unknownJoins);
    return length;
  }

  std::optional<Merging::Word> join(std::string_view text, const Merging::Pair &pair,
                                    Halves &halves) const {
    const size_t length = pair.end - pair.begin;
    if (length > longest)
      return std::nullopt;
    const std::string_view joint = text.substr(pair.begin, length);
    const int32_t token = find(joint);
    if (token == Merging::noToken)
      return std::nullopt;
    const Token &word = (*vocabulary)[token];
    if (!(word.score > rules.leastScore))
      return std::nullopt;
    if (word.kind == TokenKind::unused)
      halves[joint] = pair.middle - pair.begin;
    return Merging::Word{ranks[static_cast<size_t>(token)], token};
  }

  /// Appends the tokens of a piece, taking apart those that are unused.
  void emit(std::string_view piece, int32_t token, const Halves &halves, bool &afterUnknown,
            std::vector<int32_t> &tokens) const {
    if (!hasUnused)
      return emitWhole(piece, token, afterUnknown, tokens);
    std::vector<std::string_view> rest = {piece};
    while (!rest.empty()) {
      const std::string_view part = rest.back();
      rest.pop_back();
      const int32_t word = part.size() == piece.size() ? token : find(part);
      const auto half = halves.find(part);
      const bool divides = word != Merging::noToken &&
                           (*vocabulary)[word].kind == TokenKind::unused && half != halves.end();
      if (!divides) {
        emitWhole(part, word, afterUnknown, tokens);
        continue;
      }
      rest.push_back(part.substr(half->second));
      rest.push_back(part.substr(0, half->second));
    }
  }

  void emitWhole(std::string_view piece, int32_t token, bool &afterUnknown,
                 std::vector<int32_t> &tokens) const {
    if (token != Merging::noToken) {
      tokens.push_back(token);
      afterUnknown = false;
      return;
    }
    const Fallback &fallback = rules.fallback;
    for (const char c : piece) {
      const int32_t byte = vocabulary->bytes()[static_cast<unsigned char>(c)];
      if (fallback.bytes && byte != Vocabulary::none) {
        tokens.push_back(byte);
        afterUnknown = false;
      } else if (fallback.unknown) {
        if (!(afterUnknown && fallback.fuse))
          tokens.push_back(*fallback.unknown);
        afterUnknown = true;
      }
    }
  }

  SharedVocabulary vocabulary;
  ScoreRules rules;
  std::unordered_map<std::string_view, int32_t> ids; ///< of what text can contain
  std::vector<uint32_t> ranks;                       ///< by id, the best score first
  size_t longest = 0;                                ///< bytes of the longest of them
  bool hasUnused = false;
  Trie undivided;
};

} // namespace

std::unique_ptr<WordModel> scoreModel(SharedVocabulary vocabulary, const ScoreRules &rules) {
  return std::make_unique<ScoreModel>(std::move(vocabulary), rules);
}

} // namespace heddle
