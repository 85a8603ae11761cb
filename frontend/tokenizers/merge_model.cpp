#include "frontend/tokenizers/merging.h"
#include "frontend/tokenizers/utf8.h"
#include "frontend/tokenizers/word_model.h"

namespace heddle {

namespace {

class MergeModel final : public WordModel {
public:
  MergeModel(SharedVocabulary all, const MergeRules &rules)
      : vocabulary(std::move(all)), fallback(rules.fallback),
        continuingPrefix(rules.continuingPrefix), endSuffix(rules.endSuffix),
        wholeWordsFirst(rules.wholeWordsFirst) {
    merges.reserve(rules.merges.size());
    uint32_t rank = 0;
    for (const auto &[left, right] : rules.merges) {
      std::string_view rest = right;
      if (rest.starts_with(continuingPrefix))
        rest.remove_prefix(continuingPrefix.size());
      const int32_t one = vocabulary->find(left), other = vocabulary->find(right),
                    both = vocabulary->find(left + std::string(rest));
      if (one != Vocabulary::none && other != Vocabulary::none && both != Vocabulary::none)
        merges.try_emplace(keyOf(one, other), Merging::Word{rank, both});
      ++rank;
    }
  }

  void tokenize(std::string_view word, std::vector<int32_t> &tokens) const override {
    if (word.empty())
      return;
    if (wholeWordsFirst)
      if (const int32_t whole = vocabulary->find(word); whole != Vocabulary::none) {
        tokens.push_back(whole);
        return;
      }
    // Texts that are divided into characters have many words of one.
    if (characterLength(word) == word.size())
      if (const int32_t whole = characterToken(word, true, true); whole != Vocabulary::none) {
        tokens.push_back(whole);
        return;
      }
    Merging merging;
    merging.reserve(word.size());
    cut(word, merging);
    merging.run(static_cast<uint32_t>(word.size()), [&](const Merging::Pair &pair) {
      const auto found = merges.find(keyOf(pair.left, pair.right));
      return found == merges.end() ? std::nullopt : std::optional(found->second);
    });
    merging.forEach([&](uint32_t, uint32_t, int32_t token) { tokens.push_back(token); });
  }

private:
  static uint64_t keyOf(int32_t left, int32_t right) {
    return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
  }

  struct Hash {
    size_t operator()(uint64_t key) const {
      key *= 0x9e3779b97f4a7c15;
      return key ^ key >> 32;
    }
  };

  /// The characters of a word as pieces.
  void cut(std::string_view word, Merging &merging) const {
    bool afterUnknown = false;
    for (size_t at = 0; at < word.size();) {
      const size_t length = characterLength(word.substr(at));
      const auto start = static_cast<uint32_t>(at);
      const bool first = at == 0, last = at + length == word.size();
      at += length;
      const int32_t token = characterToken(word.substr(start, length), first, last);
      if (token != Vocabulary::none) {
        merging.append(start, token);
        afterUnknown = false;
      } else if (appendBytes(word.substr(start, length), start, merging)) {
        afterUnknown = false;
      } else {
        if (fallback.unknown && !(afterUnknown && fallback.fuse))
          merging.append(start, *fallback.unknown);
        afterUnknown = true;
      }
    }
  }

  int32_t characterToken(std::string_view character, bool first, bool last) const {
    if (continuingPrefix.empty() && endSuffix.empty())
      return vocabulary->find(character);
    return vocabulary->find((first ? "" : continuingPrefix) + std::string(character) +
                            (last ? endSuffix : ""));
  }

  bool appendBytes(std::string_view character, uint32_t start, Merging &merging) const {
    if (!fallback.bytes)
      return false;
    for (const char c : character)
      if (vocabulary->bytes()[static_cast<unsigned char>(c)] == Vocabulary::none)
        return false;
    for (const char c : character)
      merging.append(start++, vocabulary->bytes()[static_cast<unsigned char>(c)]);
    return true;
  }

  SharedVocabulary vocabulary;
  std::unordered_map<uint64_t, Merging::Word, Hash> merges;
  Fallback fallback;
  std::string continuingPrefix, endSuffix;
  bool wholeWordsFirst;
};

} // namespace

std::unique_ptr<WordModel> mergeModel(SharedVocabulary vocabulary, const MergeRules &rules) {
  return std::make_unique<MergeModel>(std::move(vocabulary), rules);
}

} // namespace heddle
