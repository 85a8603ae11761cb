// Values as text: as Python writes them, and as JSON.
#include "frontend/tokenizers/jinja_functions.h"
#include "frontend/tokenizers/jinja_text.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <list>

namespace heddle::jinja {

namespace {

/// The shortest digits that mean the number, as Python writes them.
std::string writtenReal(double value) {
  if (std::isnan(value) || std::isinf(value))
    return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string_view written(buffer.data(), static_cast<size_t>(end - buffer.data()));
  const size_t mark = written.find('e');
  int exponent = 0;
  const size_t first = mark + (written[mark + 1] == '+' ? 2 : 1);
  std::from_chars(written.data() + first, written.data() + written.size(), exponent);
  if (exponent < -4 || exponent >= 16)
    return fmt::format("{}e{}{:02}", written.substr(0, mark), exponent < 0 ? '-' : '+',
                       std::abs(exponent));
  const auto fixed =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
          .ptr;
  std::string text(buffer.data(), fixed);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

/// A text as Python would have it in a program.
void writeQuoted(std::string &out, std::string_view text) {
  const bool hasSingle = text.find('\'') != std::string_view::npos;
  const char quote = hasSingle && text.find('"') == std::string_view::npos ? '"' : '\'';
  out += quote;
  for (; !text.empty(); text.remove_prefix(characterLength(text))) {
    const char32_t c = characterAt(text);
    const std::string_view bytes = text.substr(0, characterLength(text));
    if (c == '\n' || c == '\r' || c == '\t')
      out += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    else if (c == '\\' || c == static_cast<char32_t>(quote))
      (out += '\\') += bytes;
    else if (isPrintableCharacter(c))
      out += bytes;
    else if (c < 0x100)
      out += fmt::format("\\x{:02x}", uint32_t(c));
    else
      out += c < 0x10000 ? fmt::format("\\u{:04x}", uint32_t(c))
                         : fmt::format("\\U{:08x}", uint32_t(c));
  }
  out += quote;
}

/// Writes until the text is too long or the value has no such text.
class Writer {
public:
  explicit Writer(Meter &meter) : meter(meter) {}
  std::string text;

  /// Whether writing may go on.
  bool goesOn() {
    if (text.size() > longestText)
      meter.fits(text.size());
    return meter.spend(1);
  }

  void repr(const Value &value) {
    if (!goesOn())
      return;
    if (const std::string *quoted = value.text();
        quoted && meter.spend(static_cast<int64_t>(quoted->size() / 8)))
      writeQuoted(text, *quoted);
    else if (const Sequence *list = value.sequence(); list && list->kind <= Sequence::Kind::tuple)
      reprList(*list);
    else if (const Dict *dict = value.dict())
      reprDict(*dict);
    else if (value.isNone())
      text += "None";
    else if (value.isUndefined())
      text += "Undefined";
    else if (value.isBoolean())
      text += value.isTrue() ? "True" : "False";
    else if (value.isReal() && meter.spend(2))
      text += writtenReal(*value.number());
    else if (value.integer())
      text += std::to_string(*value.integer());
    else
      meter.fail(fmt::format("{} is put out as text", value.kind()));
  }

  void json(const Value &value, const JsonStyle &style, int depth) {
    if (!goesOn())
      return;
    const Sequence *list = value.sequence();
    if (const std::string *quoted = value.text())
      jsonText(*quoted, style.isAscii);
    else if (list && list->kind <= Sequence::Kind::tuple)
      jsonList(*list, style, depth);
    else if (const Dict *dict = value.dict())
      jsonDict(*dict, style, depth);
    else if (value.isNone() || value.isNumber())
      text += jsonScalar(value);
    else
      meter.fail(fmt::format("{} cannot be written as JSON", value.kind()));
  }

private:
  void reprList(const Sequence &list) {
    const bool isTuple = list.kind == Sequence::Kind::tuple;
    text += isTuple ? '(' : '[';
    for (size_t i = 0; i < list.members.size() && !meter.failure; ++i) {
      text += i > 0 ? ", " : "";
      repr(list.members[i]);
    }
    if (isTuple && list.members.size() == 1)
      text += ',';
    text += isTuple ? ')' : ']';
  }

  void reprDict(const Dict &dict) {
    text += '{';
    for (size_t i = 0; i < dict.entries.size() && !meter.failure; ++i) {
      text += i > 0 ? ", " : "";
      repr(dict.entries[i].first);
      text += ": ";
      repr(dict.entries[i].second);
    }
    text += '}';
  }

  void jsonText(std::string_view quoted, bool isAscii) {
    if (!meter.spend(static_cast<int64_t>(quoted.size() / 8)))
      return;
    text += '"';
    for (; !quoted.empty(); quoted.remove_prefix(characterLength(quoted))) {
      const char32_t c = characterAt(quoted);
      constexpr std::string_view letters = "\"\\bfnrt", meanings = "\"\\\b\f\n\r\t";
      const size_t found = c < 0x80 ? meanings.find(static_cast<char>(c)) : std::string_view::npos;
      if (found != std::string_view::npos)
        (text += '\\') += letters[found];
      else if (c < 0x20 || (isAscii && c >= 0x7f && c < 0x10000 && c != 0x7f))
        text += fmt::format("\\u{:04x}", uint32_t(c));
      else if (isAscii && c >= 0x10000)
        text += fmt::format("\\u{:04x}\\u{:04x}", 0xd7c0 + (uint32_t(c) >> 10),
                            0xdc00 + (uint32_t(c) & 0x3ff));
      else
        text += quoted.substr(0, characterLength(quoted));
    }
    text += '"';
  }

  static std::string jsonScalar(const Value &value) {
    if (value.isNone() || value.isBoolean())
      return value.isNone() ? "null" : value.isTrue() ? "true" : "false";
    if (!value.isReal())
      return std::to_string(*value.integer());
    const double real = *value.number();
    if (std::isnan(real) || std::isinf(real))
      return std::isnan(real) ? "NaN" : real > 0 ? "Infinity" : "-Infinity";
    return writtenReal(real);
  }

  void newLine(const JsonStyle &style, int depth) {
    if (!style.indent)
      return;
    text += '\n';
    for (int i = 0; i < depth && goesOn(); ++i)
      text += *style.indent;
  }

  void jsonList(const Sequence &list, const JsonStyle &style, int depth) {
    text += '[';
    for (size_t i = 0; i < list.members.size() && !meter.failure; ++i) {
      if (i > 0)
        text += style.comma;
      newLine(style, depth + 1);
      json(list.members[i], style, depth + 1);
    }
    if (!list.members.empty())
      newLine(style, depth);
    text += ']';
  }

  void jsonDict(const Dict &dict, const JsonStyle &style, int depth) {
    std::list<const std::pair<Value, Value> *> entries; // whose sort bears any order
    for (const auto &entry : dict.entries)
      entries.push_back(&entry);
    if (style.sortsKeys)
      entries.sort([&](const auto *one, const auto *other) {
        return isLess(meter, one->first, other->first);
      });
    text += '{';
    for (const auto *entry : entries) {
      if (meter.failure)
        break;
      const auto &[key, value] = *entry;
      if (entry != entries.front())
        text += style.comma;
      newLine(style, depth + 1);
      jsonText(key.text() ? *key.text() : jsonScalar(key), style.isAscii);
      text += style.colon;
      json(value, style, depth + 1);
    }
    if (!entries.empty())
      newLine(style, depth);
    text += '}';
  }

  Meter &meter;
};

} // namespace

std::string textOf(Meter &meter, const Value &value) {
  if (value.isUndefined())
    return {};
  if (const std::string *text = value.text())
    return meter.spend(value.width()) ? *text : std::string();
  return reprOf(meter, value);
}

std::string charactersOf(Meter &meter, const Value &value) {
  std::string text = textOf(meter, value);
  return meter.spendOnCharacters(text.size()) ? std::move(text) : std::string();
}

std::string reprOf(Meter &meter, const Value &value) {
  Writer writer(meter);
  writer.repr(value);
  return !meter.fits(writer.text.size()) ? std::string() : std::move(writer.text);
}

std::string jsonOf(Meter &meter, const Value &value, const JsonStyle &style) {
  Writer writer(meter);
  writer.json(value, style, 0);
  meter.spendOnCharacters(writer.text.size());
  return !meter.fits(writer.text.size()) ? std::string() : std::move(writer.text);
}

} // namespace heddle::jinja
