#include "frontend/tokenizers/text_steps.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/ustring.h>

#include <algorithm>

namespace heddle {

namespace {

/// Calls `use(character, its bytes)` for each character.
template <class Use>
void forEachCharacter(std::string_view text, const Use &use) {
  while (!text.empty()) {
    const size_t length = characterLength(text);
    use(static_cast<UChar32>(characterAt(text)), text.substr(0, length));
    text.remove_prefix(length);
  }
}

/// Keeps the characters for which `keeps(character)`.
template <class Keeps>
Normalizer keepOnly(const Keeps &keeps) {
  return [=](std::string &text) -> Status {
    std::string kept;
    forEachCharacter(text, [&](UChar32 character, std::string_view bytes) {
      if (keeps(character))
        kept += bytes;
    });
    text = std::move(kept);
    return {};
  };
}

const icu::Normalizer2 *instanceOf(UnicodeForm form, UErrorCode &status) {
  switch (form) {
  case UnicodeForm::nfc:
    return icu::Normalizer2::getNFCInstance(status);
  case UnicodeForm::nfd:
    return icu::Normalizer2::getNFDInstance(status);
  case UnicodeForm::nfkc:
    return icu::Normalizer2::getNFKCInstance(status);
  case UnicodeForm::nfkd:
    return icu::Normalizer2::getNFKDInstance(status);
  }
  return nullptr;
}

bool isAscii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// One character without its neighbours, so that sigma does not care where it stands.
void appendLowercase(std::string &text, std::string_view character) {
  std::array<UChar, 2> wide{};
  std::array<UChar, 8> lower{};
  std::array<char, 32> narrow{};
  UErrorCode status = U_ZERO_ERROR;
  int32_t length = 0;
  u_strFromUTF8(wide.data(), 2, &length, character.data(), static_cast<int32_t>(character.size()),
                &status);
  length = u_strToLower(lower.data(), 8, wide.data(), length, "", &status);
  int32_t bytes = 0;
  u_strToUTF8(narrow.data(), 32, &bytes, lower.data(), length, &status);
  text +=
      U_SUCCESS(status) ? std::string_view(narrow.data(), static_cast<size_t>(bytes)) : character;
}

} // namespace

Error normalizedTooLong() {
  return dataError(fmt::format("the normalized text has more than {} bytes", mostNormalizedBytes));
}

Normalizer unicodeForm(UnicodeForm form) {
  return [=](std::string &text) -> Status {
    if (isAscii(text))
      return {};
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2 *normalizer = instanceOf(form, status);
    std::string normal;
    icu::StringByteSink<std::string> sink(&normal);
    if (normalizer)
      normalizer->normalizeUTF8(0, text, sink, nullptr, status);
    if (U_FAILURE(status))
      return dataError(std::string("the text cannot be normalized: ") + u_errorName(status));
    text = std::move(normal);
    return {};
  };
}

Normalizer lowercase() {
  return [](std::string &text) -> Status {
    std::string lower;
    lower.reserve(text.size());
    forEachCharacter(text, [&](UChar32 character, std::string_view bytes) {
      if (character < 0x80)
        lower +=
            static_cast<char>(character >= 'A' && character <= 'Z' ? character + 32 : character);
      else
        appendLowercase(lower, bytes);
    });
    text = std::move(lower);
    return {};
  };
}

Normalizer replaceAll(Pattern pattern, std::string with) {
  return [=](std::string &text) -> Status {
    TextRanges matches;
    if (Status status = PatternSearch(pattern, text.size()).findAll(text, matches); !status)
      return status;
    if (matches.empty())
      return {};
    std::string replaced;
    size_t at = 0;
    if (with.size() * matches.size() > mostNormalizedBytes)
      return normalizedTooLong();
    for (const TextRange &match : matches) {
      replaced.append(text, at, match.begin - at).append(with);
      at = match.end;
    }
    text = replaced.append(text, at);
    return {};
  };
}

Normalizer prepend(std::string prefix) {
  return [=](std::string &text) -> Status {
    if (!text.empty())
      text.insert(0, prefix);
    return {};
  };
}

Normalizer strip(bool left, bool right) {
  return [=](std::string &text) -> Status {
    size_t begin = text.size(), end = 0, at = 0; // of what is not white space
    forEachCharacter(text, [&](UChar32 character, std::string_view bytes) {
      at += bytes.size();
      if (u_isUWhiteSpace(character))
        return;
      begin = std::min(begin, at - bytes.size());
      end = at;
    });
    if (begin >= end) {
      if (left || right)
        text.clear();
      return {};
    }
    if (right)
      text.resize(end);
    if (left)
      text.erase(0, begin);
    return {};
  };
}

Normalizer stripMarks(bool nonSpacingOnly) {
  const uint32_t removed = nonSpacingOnly ? U_GC_MN_MASK : U_GC_M_MASK;
  return keepOnly([=](UChar32 character) { return !(U_GET_GC_MASK(character) & removed); });
}

Normalizer cleanText() {
  return [](std::string &text) -> Status {
    std::string clean;
    forEachCharacter(text, [&](UChar32 character, std::string_view bytes) {
      const bool isLine = character == '\t' || character == '\n' || character == '\r';
      // What Unicode has not assigned stays.
      const bool isControl =
          character == 0 || character == 0xfffd ||
          (U_GET_GC_MASK(character) & (U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK)) != 0;
      if (isLine || (!isControl && u_isUWhiteSpace(character)))
        clean += ' ';
      else if (!isControl)
        clean += bytes;
    });
    text = std::move(clean);
    return {};
  };
}

Normalizer separateChinese() {
  return [](std::string &text) -> Status {
    std::string separated;
    forEachCharacter(text, [&](UChar32 character, std::string_view bytes) {
      // The blocks of unified and compatibility ideographs that BERT names. Its program leaves out
      // the first 256 of extension E, and so the vocabularies do.
      const UBlockCode block = character < 0x2e80 ? UBLOCK_NO_BLOCK : ublock_getCode(character);
      const bool isChinese =
          block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS ||
          block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_A ||
          block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_B ||
          block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_C ||
          block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_D ||
          (block == UBLOCK_CJK_UNIFIED_IDEOGRAPHS_EXTENSION_E && character >= 0x2b920) ||
          block == UBLOCK_CJK_COMPATIBILITY_IDEOGRAPHS ||
          block == UBLOCK_CJK_COMPATIBILITY_IDEOGRAPHS_SUPPLEMENT;
      if (isChinese)
        separated.append(" ").append(bytes).append(" ");
      else
        separated += bytes;
    });
    text = std::move(separated);
    return {};
  };
}

bool isWhiteSpace(char32_t character) { return u_isUWhiteSpace(static_cast<UChar32>(character)); }

bool isWordCharacter(char32_t character) {
  const auto value = static_cast<UChar32>(character);
  return u_isUAlphabetic(value) ||
         (U_GET_GC_MASK(value) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK));
}

} // namespace heddle
