#include "frontend/tokenizers/jinja_text.h"

#include "frontend/tokenizers/utf8.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>

#include <algorithm>

namespace heddle::jinja {

namespace {

constexpr size_t nowhere = std::string_view::npos;

std::string_view first(std::string_view text) { return text.substr(0, characterLength(text)); }

std::string_view last(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && (static_cast<unsigned char>(text[begin]) & 0xc0) == 0x80)
    --begin;
  return text.substr(begin);
}

UChar32 wide(char32_t character) { return static_cast<UChar32>(character); }

bool endsLine(char32_t c) {
  return (c >= 0x0a && c <= 0x0d) || (c >= 0x1c && c <= 0x1e) || c == 0x85 || c == 0x2028 ||
         c == 0x2029;
}

/// A character that begins a word, as Python's title case of characters has it.
std::string titleCharacter(std::string_view character) {
  const UChar32 title = u_totitle(wide(characterAt(character)));
  std::string text;
  if (character.size() == 1 || title != wide(characterAt(character))) {
    appendCharacter(text, static_cast<char32_t>(title));
    return text;
  }
  icu::StringByteSink<std::string> sink(&text); // one that becomes several
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToTitle(
      "", U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_BREAK_ADJUSTMENT | U_TITLECASE_NO_LOWERCASE,
      nullptr, {character.data(), static_cast<int32_t>(character.size())}, sink, nullptr, status);
  return text;
}

bool allOfCase(std::string_view text, bool upper) {
  bool any = false;
  for (; !text.empty(); text.remove_prefix(characterLength(text))) {
    const UChar32 c = wide(characterAt(text));
    if (upper ? u_islower(c) || u_istitle(c) : u_isupper(c) || u_istitle(c))
      return false;
    any = any || (upper ? u_hasBinaryProperty(c, UCHAR_UPPERCASE)
                        : u_hasBinaryProperty(c, UCHAR_LOWERCASE));
  }
  return any;
}

} // namespace

bool isSpaceCharacter(char32_t c) {
  return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
         c == 0x205f || c == 0x3000;
}

std::string_view stripped(std::string_view text, std::optional<std::string_view> characters,
                          Side side) {
  std::vector<char32_t> cut;
  if (characters)
    for (std::string_view rest = *characters; !rest.empty();
         rest.remove_prefix(characterLength(rest)))
      cut.push_back(characterAt(rest));
  std::ranges::sort(cut);
  const auto isCut = [&](std::string_view character) {
    const char32_t c = characterAt(character);
    return characters ? std::ranges::binary_search(cut, c) : isSpaceCharacter(c);
  };
  while (side != Side::right && !text.empty() && isCut(first(text)))
    text.remove_prefix(first(text).size());
  while (side != Side::left && !text.empty() && isCut(last(text)))
    text.remove_suffix(last(text).size());
  return text;
}

size_t countCharacters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

CharacterPlaces::CharacterPlaces(std::string_view text)
    : text(text), length(static_cast<int64_t>(countCharacters(text))) {
  if (static_cast<size_t>(length) == text.size())
    return;
  offsets.reserve(static_cast<size_t>(length) + 1);
  for (size_t i = 0; i < text.size(); ++i)
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80)
      offsets.push_back(static_cast<uint32_t>(i));
  offsets.push_back(static_cast<uint32_t>(text.size()));
}

std::string_view CharacterPlaces::at(int64_t index) const {
  const auto place = static_cast<size_t>(index);
  if (offsets.empty())
    return text.substr(place, 1);
  return text.substr(offsets[place], offsets[place + 1] - offsets[place]);
}

std::string upperCase(std::string_view text) {
  std::string made;
  icu::StringByteSink<std::string> sink(&made);
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToUpper("", 0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr,
                            status);
  return made;
}

std::string lowerCase(std::string_view text) {
  std::string made;
  icu::StringByteSink<std::string> sink(&made);
  UErrorCode status = U_ZERO_ERROR;
  icu::CaseMap::utf8ToLower("", 0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr,
                            status);
  return made;
}

std::string capitalized(std::string_view text) {
  if (text.empty())
    return {};
  const std::string_view begin = first(text);
  // Lowered whole: a sigma depends on what stands before it.
  return titleCharacter(begin) + lowerCase(text).substr(lowerCase(begin).size());
}

std::string titleCase(std::string_view text) {
  std::string made;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin;
    while (end < text.size() &&
           u_hasBinaryProperty(wide(characterAt(text.substr(end))), UCHAR_CASED))
      end += characterLength(text.substr(end));
    made += capitalized(text.substr(begin, end - begin));
    if (end < text.size()) {
      made += first(text.substr(end));
      end += characterLength(text.substr(end));
    }
    begin = end;
  }
  return made;
}

std::string wordsCapitalized(std::string_view text) {
  const auto divides = [](std::string_view rest) {
    return std::string_view("-({[<").find(rest[0]) != nowhere ||
           isSpaceCharacter(characterAt(rest));
  };
  std::string made;
  for (size_t begin = 0; begin < text.size();) {
    const bool isDivision = divides(text.substr(begin));
    size_t end = begin;
    while (end < text.size() && divides(text.substr(end)) == isDivision)
      end += characterLength(text.substr(end));
    const std::string_view word = text.substr(begin, end - begin);
    made += isDivision ? std::string(word)
                       : upperCase(first(word)) + lowerCase(word.substr(first(word).size()));
    begin = end;
  }
  return made;
}

bool allCharacters(std::string_view text, const std::function<bool(char32_t)> &holds) {
  const bool any = !text.empty();
  for (; !text.empty(); text.remove_prefix(characterLength(text)))
    if (!holds(characterAt(text)))
      return false;
  return any;
}

bool isLetter(char32_t character) { return u_isalpha(wide(character)); }

bool isDecimal(char32_t character) {
  const auto type = u_getIntPropertyValue(wide(character), UCHAR_NUMERIC_TYPE);
  return type == U_NT_DECIMAL || type == U_NT_DIGIT;
}

std::optional<int> digitOf(char32_t character) {
  const int32_t value = u_charDigitValue(wide(character));
  return value < 0 ? std::nullopt : std::optional<int>(value);
}

bool isNumeric(char32_t character) {
  return u_getIntPropertyValue(wide(character), UCHAR_NUMERIC_TYPE) != U_NT_NONE;
}

bool isLetterOrNumber(char32_t character) { return isLetter(character) || isNumeric(character); }

bool isPrintableCharacter(char32_t character) {
  if (character == ' ')
    return true;
  constexpr uint32_t hidden = U_GC_C_MASK | U_GC_Z_MASK;
  return (U_MASK(u_charType(wide(character))) & hidden) == 0;
}

bool isAllUpper(std::string_view text) { return allOfCase(text, true); }
bool isAllLower(std::string_view text) { return allOfCase(text, false); }

namespace {

std::vector<std::string> splitAtSpaces(std::string_view text, int64_t most, bool fromRight) {
  std::vector<std::string> parts;
  text = stripped(text, std::nullopt, fromRight ? Side::right : Side::left);
  while (!text.empty()) {
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.emplace_back(text);
      break;
    }
    size_t length = 0;
    const auto next = [&](std::string_view rest) { return fromRight ? last(rest) : first(rest); };
    for (std::string_view rest = text;
         !rest.empty() && !isSpaceCharacter(characterAt(next(rest)));) {
      const size_t size = next(rest).size();
      length += size;
      rest = fromRight ? rest.substr(0, rest.size() - size) : rest.substr(size);
    }
    const size_t left = text.size() - length;
    parts.emplace_back(fromRight ? text.substr(left) : text.substr(0, length));
    text = stripped(fromRight ? text.substr(0, left) : text.substr(length), std::nullopt,
                    fromRight ? Side::right : Side::left);
  }
  return parts;
}

} // namespace

std::vector<std::string> split(std::string_view text, std::optional<std::string_view> separator,
                               int64_t most, bool fromRight) {
  std::vector<std::string> parts;
  if (!separator) {
    parts = splitAtSpaces(text, most, fromRight);
  } else {
    const auto next = [&] { return fromRight ? text.rfind(*separator) : text.find(*separator); };
    for (size_t found = next();
         found != nowhere && (most < 0 || static_cast<int64_t>(parts.size()) < most);
         found = next()) {
      const std::string_view before = text.substr(0, found),
                             behind = text.substr(found + separator->size());
      parts.emplace_back(fromRight ? behind : before);
      text = fromRight ? before : behind;
    }
    parts.emplace_back(text);
  }
  if (fromRight)
    std::ranges::reverse(parts);
  return parts;
}

std::string_view takeLine(std::string_view &text, bool keepsEnd) {
  size_t end = 0;
  while (end < text.size() && !endsLine(characterAt(text.substr(end))))
    end += characterLength(text.substr(end));
  size_t behind = end;
  if (text.substr(end).starts_with("\r\n"))
    behind += 2;
  else if (end < text.size())
    behind += characterLength(text.substr(end));
  const std::string_view line = text.substr(0, keepsEnd ? behind : end);
  text.remove_prefix(behind);
  return line;
}

} // namespace heddle::jinja
