#include "frontend/tokenizers/text_steps.h"
#include "frontend/tokenizers/utf8.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <utility>

namespace heddle {

namespace {

/// A part of a text, a match or what lies between matches.
struct Part {
  TextRange range;
  bool isMatch;
};

/// Divides texts at matches; what it needs for one serves the next.
class Divider {
public:
  Divider(SplitBehavior behavior, bool invert) : behavior(behavior), invert(invert) {}

  TextRanges matches; ///< to be filled in

  /// The parts of a text of that size.
  const TextRanges &divide(size_t size) {
    findParts(size);
    ranges.clear();
    switch (behavior) {
    case SplitBehavior::removed:
      for (const Part &part : parts)
        if (!part.isMatch)
          ranges.push_back(part.range);
      break;
    case SplitBehavior::isolated:
      for (const Part &part : parts)
        ranges.push_back(part.range);
      break;
    case SplitBehavior::contiguous:
      join(false, [](bool before, bool now) { return before == now; });
      break;
    case SplitBehavior::mergedWithPrevious:
      join(false, [](bool before, bool now) { return now && !before; });
      break;
    case SplitBehavior::mergedWithNext:
      join(true, [](bool before, bool now) { return now && !before; });
      break;
    }
    return ranges;
  }

private:
  void findParts(size_t size) {
    parts.clear();
    parts.reserve(2 * matches.size() + 1);
    size_t at = 0;
    const auto add = [&](size_t end, bool isMatch) {
      if (end > at)
        parts.push_back({{at, end}, isMatch != invert});
      at = end;
    };
    for (const TextRange &match : matches) {
      add(match.begin, false);
      add(match.end, true);
    }
    add(size, false);
  }

  /// Joins parts as the behavior asks: `joins(previous, part)` of neighbours in the order walked.
  template <class Joins>
  void join(bool backwards, const Joins &joins) {
    bool previous = false;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part &part = parts[backwards ? parts.size() - 1 - i : i];
      if (!ranges.empty() && joins(previous, part.isMatch))
        (backwards ? ranges.back().begin : ranges.back().end) =
            backwards ? part.range.begin : part.range.end;
      else
        ranges.push_back(part.range);
      previous = part.isMatch;
    }
    if (backwards)
      std::reverse(ranges.begin(), ranges.end());
  }

  SplitBehavior behavior;
  bool invert;
  LargeVector<Part> parts;
  TextRanges ranges;
};

std::string spelled(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size());
  for (const char byte : bytes)
    text += byteAlphabet()[static_cast<unsigned char>(byte)];
  return text;
}

} // namespace

PreTokenizer splitAt(Pattern pattern, SplitBehavior behavior, bool invert) {
  return [=](Fragments &fragments) -> Status {
    size_t bytes = 0;
    for (const Fragment &fragment : fragments)
      bytes += fragment.text.size();
    PatternSearch search(pattern, bytes);
    Divider divider(behavior, invert);
    Fragments divided; // from the first fragment on that does not stay whole
    bool areWhole = true;
    for (size_t i = 0; i < fragments.size(); ++i) {
      Fragment &fragment = fragments[i];
      const size_t size = fragment.text.size();
      if (Status status = search.findAll(fragment.text, divider.matches); !status)
        return status;
      const TextRanges &ranges = divider.divide(size);
      const bool isWhole =
          ranges.size() == 1 && ranges.front().begin == 0 && ranges.front().end == size;
      if (areWhole && isWhole)
        continue;
      if (std::exchange(areWhole, false)) {
        divided.reserve(fragments.size() + ranges.size());
        std::move(fragments.begin(), fragments.begin() + static_cast<ptrdiff_t>(i),
                  std::back_inserter(divided));
      }
      if (isWhole) {
        divided.push_back(std::move(fragment));
        continue;
      }
      for (const TextRange &range : ranges)
        divided.push_back({fragment.text.substr(range.begin, range.end - range.begin),
                           fragment.atStart && range.begin == 0});
    }
    if (!areWhole)
      fragments = std::move(divided);
    return {};
  };
}

PreTokenizer metaspace(const std::string &replacement, PrependScheme scheme, bool split) {
  const PreTokenizer divide = splitAt(Pattern::literal(replacement), SplitBehavior::mergedWithNext);
  return [=](Fragments &fragments) -> Status {
    for (Fragment &fragment : fragments) {
      std::string text;
      for (const char c : fragment.text)
        if (c == ' ')
          text += replacement;
        else
          text += c;
      const bool prepends =
          scheme == PrependScheme::always || (scheme == PrependScheme::first && fragment.atStart);
      if (prepends && !text.starts_with(replacement))
        text.insert(0, replacement);
      fragment.text = std::move(text);
    }
    return split ? divide(fragments) : Status();
  };
}

PreTokenizer spellBytes() {
  return [](Fragments &fragments) -> Status {
    for (Fragment &fragment : fragments)
      fragment.text = spelled(fragment.text);
    return {};
  };
}

Normalizer spellBytesOfText() {
  return [](std::string &text) -> Status {
    text = spelled(text);
    return {};
  };
}

PreTokenizer prependSpace() {
  return [](Fragments &fragments) -> Status {
    for (Fragment &fragment : fragments)
      if (!fragment.text.starts_with(' '))
        fragment.text.insert(0, 1, ' ');
    return {};
  };
}

const Pattern &gpt2Pattern() {
  static const Pattern pattern = *Pattern::compile(
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)");
  return pattern;
}

const std::array<std::string, 256> &byteAlphabet() {
  static const std::array<std::string, 256> alphabet = [] {
    std::array<std::string, 256> characters;
    char32_t other = 0x100;
    for (char32_t byte = 0; byte < 256; ++byte) {
      const bool isPrintable = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad);
      appendCharacter(characters[byte], isPrintable ? byte : other++);
    }
    return characters;
  }();
  return alphabet;
}

std::string bytesSpelledBy(std::string_view text) {
  static const std::unordered_map<std::string_view, char> values = [] {
    std::unordered_map<std::string_view, char> all;
    for (size_t byte = 0; byte < 256; ++byte)
      all[byteAlphabet()[byte]] = static_cast<char>(byte);
    return all;
  }();
  std::string bytes;
  for (size_t at = 0; at < text.size();) {
    const size_t length = characterLength(text.substr(at));
    const auto found = values.find(text.substr(at, length));
    if (found == values.end())
      return std::string(text);
    bytes += found->second;
    at += length;
  }
  return bytes;
}

} // namespace heddle
