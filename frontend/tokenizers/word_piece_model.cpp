#include "frontend/tokenizers/trie.h"
#include "frontend/tokenizers/utf8.h"
#include "frontend/tokenizers/word_model.h"

namespace heddle {

namespace {

class WordPieceModel final : public WordModel {
public:
  WordPieceModel(SharedVocabulary all, const WordPieceRules &rules)
      : vocabulary(std::move(all)), rules(rules) {
    std::vector<std::pair<std::string_view, int32_t>> starts, rests;
    for (int32_t id = 0; id < vocabulary->size(); ++id) {
      if ((*vocabulary)[id].kind == TokenKind::control)
        continue;
      std::string_view text = (*vocabulary)[id].text;
      starts.emplace_back(text, id);
      if (text.starts_with(rules.continuingPrefix))
        rests.emplace_back(text.substr(rules.continuingPrefix.size()), id);
    }
    first = Trie(std::move(starts));
    next = Trie(std::move(rests));
  }

  void tokenize(std::string_view word, std::vector<int32_t> &tokens) const override {
    const size_t before = tokens.size();
    size_t characters = 0;
    for (size_t at = 0; at < word.size(); at += characterLength(word.substr(at)))
      ++characters;
    bool isKnown = characters <= rules.mostCharacters;
    for (size_t at = 0; isKnown && at < word.size();) {
      const Trie::Match match = (at == 0 ? first : next).longestPrefix(word.substr(at));
      if (match.length)
        tokens.push_back(match.number);
      at += match.length;
      isKnown = match.length != 0;
    }
    if (isKnown)
      return;
    tokens.resize(before);
    tokens.push_back(rules.unknown);
  }

private:
  SharedVocabulary vocabulary;
  WordPieceRules rules;
  Trie first, next;
};

class WordLevelModel final : public WordModel {
public:
  WordLevelModel(SharedVocabulary vocabulary, int32_t unknown)
      : vocabulary(std::move(vocabulary)), unknown(unknown) {}

  void tokenize(std::string_view word, std::vector<int32_t> &tokens) const override {
    const int32_t token = vocabulary->find(word);
    tokens.push_back(token == Vocabulary::none ? unknown : token);
  }

private:
  SharedVocabulary vocabulary;
  int32_t unknown;
};

} // namespace

std::unique_ptr<WordModel> wordPieceModel(SharedVocabulary vocabulary,
                                          const WordPieceRules &rules) {
  return std::make_unique<WordPieceModel>(std::move(vocabulary), rules);
}

std::unique_ptr<WordModel> wordLevelModel(SharedVocabulary vocabulary, int32_t unknown) {
  return std::make_unique<WordLevelModel>(std::move(vocabulary), unknown);
}

} // namespace heddle
