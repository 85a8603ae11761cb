#include "frontend/tokenizers/hf_steps.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/character_map.h"
#include "frontend/tokenizers/utf8.h"
#include "frontend/tokenizers/vocabulary.h"

#include <fmt/format.h>

#include <map>
#include <utility>

namespace heddle {

namespace {

/// Bytes from base64 (RFC 4648), or nothing.
std::optional<std::string> fromBase64(std::string_view text) {
  std::string bytes;
  uint32_t bits = 0;
  int count = 0;
  while (text.ends_with('='))
    text.remove_suffix(1);
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (const char c : text) {
    const size_t digit = digits.find(c);
    if (digit == std::string_view::npos)
      return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes += static_cast<char>(bits >> count & 0xff);
    }
  }
  return bytes;
}

/// `{"String": ...}` or `{"Regex": ...}`.
Pattern readPattern(JsonErrors &errors, JsonFields &fields) {
  const JsonValue &value = fields.object("pattern");
  JsonFields pattern(errors, value, fields.pathOf("pattern"));
  Pattern result = Pattern::literal("");
  if (pattern.find("String")) {
    result = Pattern::literal(pattern.text("String"));
  } else {
    auto compiled = Pattern::compile(pattern.text("Regex"));
    if (compiled)
      result = *std::move(compiled);
    else
      fields.wrong("pattern", compiled.error().message);
  }
  pattern.finish();
  return result;
}

SplitBehavior readBehavior(JsonFields &fields) {
  static const std::map<std::string, SplitBehavior> names = {
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::mergedWithPrevious},
      {"MergedWithNext", SplitBehavior::mergedWithNext},
      {"Contiguous", SplitBehavior::contiguous}};
  const std::string name = fields.text("behavior");
  const auto found = names.find(name);
  if (found != names.end())
    return found->second;
  fields.wrong("behavior", fmt::format("is {}, expected Removed, Isolated, MergedWithPrevious, "
                                       "MergedWithNext or Contiguous",
                                       inQuotes(name)));
  return SplitBehavior::isolated;
}

/// An expression of ours.
Pattern known(const char *expression) { return *Pattern::compile(expression); }

void readBertNormalizer(JsonFields &fields, std::vector<Normalizer> &steps) {
  const bool lower = fields.flag("lowercase", true);
  if (fields.flag("clean_text", true))
    steps.push_back(cleanText());
  if (fields.flag("handle_chinese_chars", true))
    steps.push_back(separateChinese());
  if (fields.flag("strip_accents", lower)) {
    steps.push_back(unicodeForm(UnicodeForm::nfd));
    steps.push_back(stripMarks(true));
  }
  if (lower)
    steps.push_back(lowercase());
}

void readPrecompiled(JsonFields &fields, std::vector<Normalizer> &steps) {
  const auto bytes = fromBase64(fields.text("precompiled_charsmap"));
  if (!bytes)
    return fields.wrong("precompiled_charsmap", "is no base64");
  auto map = CharacterMap::parse(*bytes);
  auto step = map ? precompiledNormalizer(*std::move(map)) : Result<Normalizer>(map.error());
  if (!step)
    return fields.wrong("precompiled_charsmap", step.error().message);
  steps.push_back(*std::move(step));
}

/// The members of a Sequence.
template <class Read>
void readSequence(JsonFields &fields, const char *key, const Read &read) {
  size_t index = 0;
  for (const JsonValue &member : fields.array(key))
    read(member, fmt::format("{}[{}]", fields.pathOf(key), index++));
}

/// What Metaspace says of the text's first word.
PrependScheme readPrepend(JsonFields &fields) {
  const bool addsSpace = fields.flag("add_prefix_space", true);
  const std::string scheme = fields.text("prepend_scheme", addsSpace ? "always" : "never");
  if (scheme != "first" && scheme != "never" && scheme != "always")
    fields.wrong("prepend_scheme",
                 fmt::format("is {}, expected first, never or always", inQuotes(scheme)));
  return scheme == "first"   ? PrependScheme::first
         : scheme == "never" ? PrependScheme::never
                             : PrependScheme::always;
}

void readByteLevel(JsonFields &fields, std::vector<PreTokenizer> &steps) {
  if (fields.flag("add_prefix_space", true))
    steps.push_back(prependSpace());
  if (fields.flag("use_regex", true))
    steps.push_back(splitAt(gpt2Pattern(), SplitBehavior::isolated));
  fields.flag("trim_offsets", true); // says where words are, not what they are
  steps.push_back(spellBytes());
}

std::string replaced(std::string text, const std::string &what, const std::string &with) {
  for (size_t at = 0; !what.empty() && (at = text.find(what, at)) != std::string::npos;
       at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

/// What English writes without the space before it.
std::string cleaned(std::string text) {
  for (const auto &[what, with] :
       std::initializer_list<std::pair<const char *, const char *>>{{" .", "."},
                                                                    {" ?", "?"},
                                                                    {" !", "!"},
                                                                    {" ,", ","},
                                                                    {" ' ", "'"},
                                                                    {" n't", "n't"},
                                                                    {" 'm", "'m"},
                                                                    {" do not", " don't"},
                                                                    {" 's", "'s"},
                                                                    {" 've", "'ve"},
                                                                    {" 're", "'re"}})
    text = replaced(text, what, with);
  return text;
}

/// The first token stays as it is; before a later one that continues no word there is a space.
std::string wordPieceText(const std::string &token, const std::string &prefix, bool isFirst) {
  return isFirst ? token : token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
}

/// The number of characters, counted up to `most`, with which `text` begins or ends.
size_t countAround(std::string_view text, std::string_view character, size_t most, bool atEnd) {
  size_t count = 0;
  while (count < most && (atEnd ? text.ends_with(character) : text.starts_with(character))) {
    atEnd ? text.remove_suffix(character.size()) : text.remove_prefix(character.size());
    ++count;
  }
  return count;
}

void readReplaceDecoder(JsonErrors &errors, JsonFields &fields, Decoding &decoding) {
  const Pattern pattern = readPattern(errors, fields);
  const std::string with = fields.text("content");
  if (decoding.fused)
    fields.wrong("type", "is 'Replace' after Fuse, which is not known here");
  const Normalizer replace = replaceAll(pattern, with);
  decoding.steps.push_back([=, &errors](const std::string &token, bool) {
    std::string text = token;
    if (const Status status = replace(text); !status)
      errors.add("decoder", status.error().message);
    return text;
  });
}

void readStripDecoder(JsonFields &fields, Decoding &decoding) {
  const std::string content = fields.text("content");
  const auto start = static_cast<size_t>(fields.integer("start", 0, 1 << 20));
  const auto stop = static_cast<size_t>(fields.integer("stop", 0, 1 << 20));
  if (content.empty() || characterLength(content) != content.size())
    return fields.wrong("content", fmt::format("is {}, expected one character", inQuotes(content)));
  // The end of a whole text is not known before it is there, nor how its second token begins.
  if (decoding.fused && (start > 1 || stop > 0))
    return fields.wrong("type", "is 'Strip' of more than the first character after Fuse, which is "
                                "not known here");
  decoding.steps.push_back([=, onlyFirst = decoding.fused](const std::string &token, bool isFirst) {
    if (onlyFirst && !isFirst)
      return token;
    const size_t left = countAround(token, content, start, false) * content.size();
    const std::string rest = token.substr(left);
    return rest.substr(0, rest.size() - countAround(rest, content, stop, true) * content.size());
  });
}

/// Every sign is a space, but in the first token nothing where a text is given a sign to begin
/// with.
void readMetaspaceDecoder(JsonFields &fields, Decoding &decoding) {
  const std::string sign = fields.text("replacement", std::string(spaceSign));
  fields.text("str_rep", "");
  fields.flag("split", true);
  const bool drops = readPrepend(fields) != PrependScheme::never;
  decoding.steps.push_back([=](const std::string &token, bool isFirst) {
    return replaced(token, sign, isFirst && drops ? "" : " ");
  });
}

std::string byteOrText(const std::string &token) {
  const int byte = spelledByte(token);
  return byte < 0 ? token : std::string(1, static_cast<char>(byte));
}

} // namespace

void readNormalizer(JsonErrors &errors, const JsonValue &value, const std::string &path,
                    std::vector<Normalizer> &steps) {
  if (value.is_null())
    return;
  JsonFields fields(errors, value, path);
  const std::string type = fields.text("type");
  if (type == "Sequence")
    readSequence(fields, "normalizers", [&](const JsonValue &member, const std::string &place) {
      readNormalizer(errors, member, place, steps);
    });
  else if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD")
    steps.push_back(unicodeForm(type == "NFC"    ? UnicodeForm::nfc
                                : type == "NFD"  ? UnicodeForm::nfd
                                : type == "NFKC" ? UnicodeForm::nfkc
                                                 : UnicodeForm::nfkd));
  else if (type == "Lowercase")
    steps.push_back(lowercase());
  else if (type == "StripAccents")
    steps.push_back(stripMarks(false));
  else if (type == "Strip") {
    const bool left = fields.flag("strip_left", true), right = fields.flag("strip_right", true);
    steps.push_back(strip(left, right));
  } else if (type == "Prepend")
    steps.push_back(prepend(fields.text("prepend")));
  else if (type == "Replace") {
    Pattern pattern = readPattern(errors, fields);
    steps.push_back(replaceAll(std::move(pattern), fields.text("content")));
  } else if (type == "BertNormalizer")
    readBertNormalizer(fields, steps);
  else if (type == "Precompiled")
    readPrecompiled(fields, steps);
  else if (type == "ByteLevel")
    steps.push_back(spellBytesOfText());
  else
    fields.wrong("type", fmt::format("is {}, a normalizer that is not known here", inQuotes(type)));
  fields.finish();
}

void readPreTokenizer(JsonErrors &errors, const JsonValue &value, const std::string &path,
                      std::vector<PreTokenizer> &steps) {
  if (value.is_null())
    return;
  JsonFields fields(errors, value, path);
  const std::string type = fields.text("type");
  constexpr const char *punctuation =
      R"([\x{21}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{60}\x{7b}-\x{7e}\p{P}])";
  const auto split = [&](const char *expression, SplitBehavior behavior, bool invert = false) {
    steps.push_back(splitAt(known(expression), behavior, invert));
  };
  if (type == "Sequence")
    readSequence(fields, "pretokenizers", [&](const JsonValue &member, const std::string &place) {
      readPreTokenizer(errors, member, place, steps);
    });
  else if (type == "ByteLevel")
    readByteLevel(fields, steps);
  else if (type == "Split") {
    Pattern pattern = readPattern(errors, fields);
    const SplitBehavior behavior = readBehavior(fields);
    steps.push_back(splitAt(std::move(pattern), behavior, fields.flag("invert", false)));
  } else if (type == "Metaspace") {
    const std::string replacement = fields.text("replacement", std::string(spaceSign));
    fields.text("str_rep", ""); // the replacement again, in old files
    const PrependScheme scheme = readPrepend(fields);
    steps.push_back(metaspace(replacement, scheme, fields.flag("split", true)));
  } else if (type == "Digits")
    split(R"(\p{N})", fields.flag("individual_digits", false) ? SplitBehavior::isolated
                                                              : SplitBehavior::contiguous);
  else if (type == "Whitespace")
    // What Rust's expressions call words holds the joiners too.
    split(R"([\w\x{200c}\x{200d}]+|[^\w\s\x{200c}\x{200d}]+)", SplitBehavior::removed, true);
  else if (type == "WhitespaceSplit")
    split(R"(\s)", SplitBehavior::removed);
  else if (type == "BertPreTokenizer") {
    split(R"(\s)", SplitBehavior::removed);
    split(punctuation, SplitBehavior::isolated);
  } else if (type == "Punctuation") {
    const bool says = fields.find("behavior") != nullptr;
    split(punctuation, says ? readBehavior(fields) : SplitBehavior::isolated);
  } else if (type == "CharDelimiterSplit")
    steps.push_back(splitAt(Pattern::literal(fields.text("delimiter")), SplitBehavior::removed));
  else
    fields.wrong("type",
                 fmt::format("is {}, a pre-tokenizer that is not known here", inQuotes(type)));
  fields.finish();
}

void readDecoder(JsonErrors &errors, const JsonValue &value, const std::string &path,
                 Decoding &decoding) {
  if (value.is_null()) { // words with spaces between them
    decoding.steps.push_back(
        [](const std::string &token, bool isFirst) { return isFirst ? token : " " + token; });
    return;
  }
  JsonFields fields(errors, value, path);
  const std::string type = fields.text("type");
  if (type == "Sequence")
    readSequence(fields, "decoders", [&](const JsonValue &member, const std::string &place) {
      readDecoder(errors, member, place, decoding);
    });
  else if (type == "ByteLevel") {
    for (const char *key : {"add_prefix_space", "trim_offsets", "use_regex"})
      fields.flag(key, true);
    decoding.steps.push_back([](const std::string &token, bool) { return bytesSpelledBy(token); });
  } else if (type == "ByteFallback")
    decoding.steps.push_back([](const std::string &token, bool) { return byteOrText(token); });
  else if (type == "Fuse")
    decoding.fused = true;
  else if (type == "Replace")
    readReplaceDecoder(errors, fields, decoding);
  else if (type == "Strip")
    readStripDecoder(fields, decoding);
  else if (type == "Metaspace")
    readMetaspaceDecoder(fields, decoding);
  else if (type == "WordPiece") {
    const std::string prefix = fields.text("prefix", "##");
    const bool cleansUp = fields.flag("cleanup", true);
    decoding.steps.push_back([=](const std::string &token, bool isFirst) {
      std::string text = wordPieceText(token, prefix, isFirst);
      return cleansUp ? cleaned(std::move(text)) : text;
    });
  } else
    fields.wrong("type", fmt::format("is {}, a decoder that is not known here", inQuotes(type)));
  fields.finish();
}

} // namespace heddle
