#include "frontend/tokenizers/character_map.h"

#include "frontend/tokenizers/trie.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace heddle {

// A unit of the double array.
static bool hasLeaf(uint32_t unit) { return unit >> 8 & 1; }
static uint32_t valueOf(uint32_t unit) { return unit & 0x7fffffff; }
static uint32_t labelOf(uint32_t unit) { return unit & 0x800000ff; }
static uint32_t offsetOf(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

Result<CharacterMap> CharacterMap::parse(std::string_view bytes) {
  CharacterMap map;
  uint32_t trieBytes = 0;
  if (bytes.size() < sizeof(trieBytes))
    return dataError(fmt::format("precompiled_charsmap has {} bytes, expected at least {}",
                                 bytes.size(), sizeof(trieBytes)));
  std::memcpy(&trieBytes, bytes.data(), sizeof(trieBytes));
  bytes.remove_prefix(sizeof(trieBytes));
  if (trieBytes > bytes.size() || trieBytes % sizeof(uint32_t) != 0)
    return dataError(fmt::format("precompiled_charsmap says that {} of its {} bytes are a table, "
                                 "expected a multiple of 4 that fits",
                                 trieBytes, bytes.size()));
  map.units.resize(trieBytes / sizeof(uint32_t));
  if (trieBytes > 0)
    std::memcpy(map.units.data(), bytes.data(), trieBytes);
  map.texts = bytes.substr(trieBytes);
  map.texts += '\0'; // whatever the file ends with
  return map;
}

std::vector<CharacterMap::Match> CharacterMap::matches(std::string_view text) const {
  std::vector<Match> found;
  if (units.empty())
    return found;
  uint32_t node = offsetOf(units[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (node >= units.size() || labelOf(units[node]) != byte)
      break;
    const bool isWord = hasLeaf(units[node]);
    node ^= offsetOf(units[node]);
    if (!isWord)
      continue;
    if (node >= units.size())
      break;
    if (const uint32_t start = valueOf(units[node]); start < texts.size())
      found.push_back({i + 1, std::string_view(texts.data() + start)});
  }
  return found;
}

namespace {

/// The walk of SentencePiece's normalizer over a text.
class SentencePieceWalk {
public:
  SentencePieceWalk(const CharacterMap &map, const SentencePieceRules &rules, const Trie &kept)
      : map(map), rules(rules), kept(kept) {}

  Status run(std::string_view rest, std::string &result) {
    const std::string_view space = rules.escapeWhitespaces ? spaceSign : " ";
    if (rules.removeExtraWhitespaces)
      while (!rest.empty()) {
        const CharacterMap::Match next = nextOf(rest);
        if (next.text != " ")
          break;
        rest.remove_prefix(next.length);
      }
    if (rest.empty())
      return {};
    if (rules.addDummyPrefix && !rules.whitespaceIsSuffix)
      result += space;
    bool afterSpace = rules.removeExtraWhitespaces;
    while (!rest.empty()) {
      const CharacterMap::Match next = nextOf(rest);
      rest.remove_prefix(next.length);
      std::string_view text = next.text;
      while (afterSpace && text.starts_with(' '))
        text.remove_prefix(1);
      if (!text.empty())
        afterSpace = text.ends_with(' ');
      for (const char c : text)
        if (c == ' ')
          result += space;
        else
          result += c;
      if (!rules.removeExtraWhitespaces)
        afterSpace = false;
      if (result.size() > mostNormalizedBytes)
        return normalizedTooLong();
    }
    while (rules.removeExtraWhitespaces && result.ends_with(space))
      result.resize(result.size() - space.size());
    if (rules.addDummyPrefix && rules.whitespaceIsSuffix)
      result += space;
    return {};
  }

private:
  CharacterMap::Match nextOf(std::string_view rest) const {
    if (const Trie::Match symbol = kept.longestPrefix(rest); symbol.length)
      return {symbol.length, rest.substr(0, symbol.length)};
    if (const auto found = map.matches(rest); !found.empty())
      return found.back();
    // A byte that is no part of a character is never looked up.
    const Utf8Verdict verdict = judgeUtf8(rest);
    return verdict.kind == Utf8Verdict::whole
               ? CharacterMap::Match{verdict.length, rest.substr(0, verdict.length)}
               : CharacterMap::Match{1, replacementCharacter};
  }

  const CharacterMap &map;
  const SentencePieceRules &rules;
  const Trie &kept;
};

} // namespace

Normalizer sentencePieceNormalizer(CharacterMap map, const SentencePieceRules &rules) {
  const auto shared = std::make_shared<const SentencePieceRules>(rules);
  std::vector<std::pair<std::string_view, int32_t>> words;
  for (const std::string &word : shared->userDefined)
    words.emplace_back(word, 0);
  return [map = std::move(map), shared, kept = Trie(std::move(words))](std::string &text) {
    std::string result;
    Status status = SentencePieceWalk(map, *shared, kept).run(text, result);
    text = std::move(result);
    return status;
  };
}

Result<Normalizer> precompiledNormalizer(CharacterMap map) {
  const auto clusters = Pattern::compile(R"(\X)");
  if (!clusters)
    return clusters.error();
  constexpr size_t longestCluster = 5; // longer ones are never looked up whole
  return Normalizer([map = std::move(map), clusters = *clusters](std::string &text) -> Status {
    TextRanges ranges;
    if (Status status = PatternSearch(clusters, text.size()).findAll(text, ranges); !status)
      return status;
    std::string result;
    for (const TextRange &range : ranges) {
      std::string_view cluster =
          std::string_view(text).substr(range.begin, range.end - range.begin);
      if (cluster.size() <= longestCluster)
        if (const auto found = map.matches(cluster); !found.empty()) {
          result += found.front().text;
          continue;
        }
      for (; !cluster.empty(); cluster.remove_prefix(characterLength(cluster))) {
        const std::string_view character = cluster.substr(0, characterLength(cluster));
        const auto found = map.matches(character);
        result += found.empty() ? character : found.front().text;
      }
      if (result.size() > mostNormalizedBytes)
        return normalizedTooLong();
    }
    text = replaceInvalidUtf8(result); // the table's texts are any bytes
    return {};
  });
}

} // namespace heddle
