#include "frontend/tokenizers/pattern.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

namespace heddle {

namespace {

// Enough for a megabyte of one character, and an end to expressions that explode.
constexpr uint32_t mostSteps = 20'000'000;
constexpr uint32_t mostHeapKilobytes = 512 * 1024;

struct Freer {
  void operator()(pcre2_code *code) const { pcre2_code_free(code); }
  void operator()(pcre2_match_context *context) const { pcre2_match_context_free(context); }
  void operator()(pcre2_match_data *data) const { pcre2_match_data_free(data); }
};

std::string messageOf(int error) {
  std::array<PCRE2_UCHAR, 200> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char *>(text.data());
}

// The two dialects differ in what `\s`, `\w` and `\h` are: PCRE2 counts U+180E as a space, no marks
// as parts of words, and `\h` as spaces. Written as the contents of a class.
constexpr std::string_view spaces = R"(\x{9}-\x{d}\x{85}\p{Z})";
constexpr std::string_view wordCharacters = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
constexpr std::string_view hexDigits = "0-9A-Fa-f";

/// The expression in the dialect of PCRE2. A name of more than two letters is a script's:
/// PCRE2 would take it for the characters that the script shares with others too. Errors (data):
/// classes joined and intersected, which are Oniguruma's alone: PCRE2 would take the signs as they
/// are.
Result<std::string> translated(std::string_view expression) {
  std::string result;
  bool inClass = false;
  for (size_t i = 0; i < expression.size(); ++i) {
    const char c = expression[i];
    const char next = i + 1 < expression.size() ? expression[i + 1] : '\0';
    if (c != '\\') {
      if (inClass && ((c == '[' && next != ':') || (c == '&' && next == '&')))
        return dataError(fmt::format("the expression {} is not understood: it has a class inside a "
                                     "class (at {})",
                                     inQuotes(expression), i));
      inClass = inClass ? c != ']' : c == '[';
      result += c;
      continue;
    }
    ++i;
    const bool isNegated = next == 'S' || next == 'W' || next == 'H';
    const std::string_view set = next == 's' || next == 'S'   ? spaces
                                 : next == 'w' || next == 'W' ? wordCharacters
                                 : next == 'h' || next == 'H' ? hexDigits
                                                              : "";
    if (!set.empty() && !(inClass && isNegated)) {
      const char *open = inClass ? "" : isNegated ? "[^" : "[";
      result += fmt::format("{}{}{}", open, set, inClass ? "" : "]");
      continue;
    }
    result += c;
    result += next;
    const size_t close = expression.find('}', i);
    if ((next == 'p' || next == 'P') && close != std::string_view::npos &&
        expression.substr(i + 1).starts_with('{') && close - i > 4) {
      const std::string_view name = expression.substr(i + 2, close - i - 2);
      const bool isScript = name.find_first_of(":=^") == std::string_view::npos && name != "Any" &&
                            name != "Alphabetic";
      result += fmt::format("{{{}{}}}", isScript ? "sc:" : "", name);
      i = close;
    }
  }
  return result;
}

} // namespace

Result<Pattern> Pattern::compile(std::string_view expression) {
  const auto translation = translated(expression);
  if (!translation)
    return translation.error();
  const std::string &text = *translation;
  int error = 0;
  size_t offset = 0;
  std::shared_ptr<pcre2_code> code(
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr),
      Freer());
  if (!code)
    return dataError(fmt::format("the expression {} is not understood: {} (at {})",
                                 inQuotes(expression), messageOf(error), offset));
  Pattern pattern;
  pattern.source = expression;
  pattern.code = code;
  return pattern;
}

Pattern Pattern::literal(std::string text) {
  Pattern pattern;
  pattern.source = std::move(text);
  return pattern;
}

Result<std::vector<TextRange>> Pattern::findAll(std::string_view text) const {
  if (code)
    return findByCode(text);
  std::vector<TextRange> found;
  for (size_t at = 0; !source.empty() && (at = text.find(source, at)) != std::string_view::npos;
       at += source.size())
    found.push_back({at, at + source.size()});
  return found;
}

Result<std::vector<TextRange>> Pattern::findByCode(std::string_view text) const {
  const auto *compiled = static_cast<const pcre2_code *>(code.get());
  std::unique_ptr<pcre2_match_context, Freer> context(pcre2_match_context_create(nullptr));
  std::unique_ptr<pcre2_match_data, Freer> data(
      pcre2_match_data_create_from_pattern(compiled, nullptr));
  if (!context || !data)
    return dataError("out of memory");
  pcre2_set_match_limit(context.get(), mostSteps);
  pcre2_set_heap_limit(context.get(), mostHeapKilobytes);
  std::vector<TextRange> found;
  for (size_t at = 0; at < text.size();) {
    const int count = pcre2_match(compiled, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                  at, PCRE2_NO_UTF_CHECK, data.get(), context.get());
    if (count == PCRE2_ERROR_NOMATCH)
      break;
    if (count < 0)
      return dataError(fmt::format("the expression {} cannot be matched at byte {} of the text: {}",
                                   inQuotes(source), at, messageOf(count)));
    const PCRE2_SIZE *range = pcre2_get_ovector_pointer(data.get());
    const size_t begin = range[0], end = range[1];
    // An expression that looks ahead finds places. The end of a match is not another one.
    const bool isEmpty = begin >= end;
    if (begin >= at && !(isEmpty && !found.empty() && begin == found.back().end))
      found.push_back({begin, std::max(begin, end)});
    const size_t next = std::max(at, end);
    at = isEmpty && next < text.size() ? next + characterLength(text.substr(next)) : next;
    if (isEmpty && next == text.size())
      break;
  }
  return found;
}

} // namespace heddle
