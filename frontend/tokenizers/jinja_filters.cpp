#include "frontend/tokenizers/jinja_filters.h"

#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_text.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace heddle::jinja {

namespace {

Value orDefault(Meter &, const Value &subject, const Given &given) {
  if (!subject.isUndefined() && (!given.isTrue(1) || subject.isTrue()))
    return subject;
  return given.has(0) ? given[0] : Value("");
}

Value asText(Meter &meter, const Value &subject, const Given &) { return textOf(meter, subject); }

Value trim(Meter &meter, const Value &subject, const Given &given) {
  return strip(meter, textOf(meter, subject), given.has(0) ? given[0] : Value(nullptr), Side::both);
}

Value upper(Meter &meter, const Value &subject, const Given &) {
  return upperCase(charactersOf(meter, subject));
}

Value lower(Meter &meter, const Value &subject, const Given &) {
  return lowerCase(charactersOf(meter, subject));
}

Value capitalize(Meter &meter, const Value &subject, const Given &) {
  return capitalized(charactersOf(meter, subject));
}

Value title(Meter &meter, const Value &subject, const Given &) {
  return wordsCapitalized(charactersOf(meter, subject));
}

Value replace(Meter &meter, const Value &subject, const Given &given) {
  const Value text = textOf(meter, subject), from = textOf(meter, given[0]),
              to = textOf(meter, given[1]);
  Arguments arguments{{from, to}, {}};
  if (given.has(2) && !given[2].isNone())
    arguments.values.push_back(given[2]);
  return callMethod(meter, Method(text, "replace"), arguments);
}

Value center(Meter &meter, const Value &subject, const Given &given) {
  return callMethod(meter, Method(textOf(meter, subject), "center"),
                    {{given.has(0) ? given[0] : Value(80)}, {}});
}

Value indent(Meter &meter, const Value &subject, const Given &given) {
  const int64_t width = given.has(0) ? given[0].integer().value_or(0) : 4;
  if (given.has(0) && !given[0].text() && !given[0].integer())
    return meter.fail("the filter 'indent' takes a number or a text");
  if (!subject.text())
    return meter.fail(describe("the filter 'indent'", subject));
  if (!meter.fits(static_cast<size_t>(std::max<int64_t>(width, 0))))
    return {};
  const std::string space =
      given[0].text() ? *given[0].text() : std::string(size_t(std::max<int64_t>(width, 0)), ' ');
  const std::string text = charactersOf(meter, subject) + "\n";
  std::string made;
  bool isFirst = true;
  for (std::string_view rest = text; !rest.empty() && made.size() <= longestText; isFirst = false) {
    const std::string_view line = takeLine(rest, false);
    if (!isFirst)
      made += '\n';
    if (isFirst ? given.isTrue(1) : given.isTrue(2) || !line.empty())
      made += space;
    made += line;
  }
  return meter.fits(made.size()) ? Value(std::move(made)) : Value();
}

/// Runs of letters, numbers and "_".
Value wordCount(Meter &meter, const Value &subject, const Given &) {
  const std::string text = charactersOf(meter, subject);
  int64_t count = 0;
  bool inWord = false;
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(characterLength(rest))) {
    const char32_t c = characterAt(rest);
    const bool isOfWord = c == '_' || isLetterOrNumber(c);
    count += isOfWord && !inWord ? 1 : 0;
    inWord = isOfWord;
  }
  return count;
}

/// A number as Python's int() and float() know it, in plain digits: without the spaces around it,
/// without "_" between digits, and with the digits of any script.
std::string plainNumber(std::string_view text) {
  std::string made;
  bool afterDigit = false;
  text = stripped(text, std::nullopt, Side::both);
  for (std::string_view rest = text; !rest.empty(); rest.remove_prefix(characterLength(rest))) {
    const std::string_view next = rest.substr(1);
    if (afterDigit && rest[0] == '_' && !next.empty() && digitOf(characterAt(next)))
      continue;
    const auto digit = digitOf(characterAt(rest));
    afterDigit = digit.has_value();
    made += digit ? std::string(1, char('0' + *digit)) : rest.substr(0, characterLength(rest));
  }
  const bool hasPlus = made.starts_with('+') && !made.starts_with("+-");
  return hasPlus ? made.substr(1) : made;
}

std::optional<double> realOf(const std::string &number) {
  double value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (end != number.data() + number.size() || number.ends_with(')')) // as in "nan(1)"
    return std::nullopt;
  if (error == std::errc::result_out_of_range)
    return std::strtod(number.c_str(), nullptr); // which is 0 or infinite
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<Value> wholeOf(Meter &meter, double value) {
  if (std::isnan(value) || std::isinf(value))
    return std::nullopt;
  return std::abs(value) < 9.2e18 ? Value(static_cast<int64_t>(value))
                                  : meter.fail("makes a number beyond 64 bits");
}

Value toInteger(Meter &meter, const Value &subject, const Given &given) {
  const Value otherwise = given.has(0) ? given[0] : Value(0);
  if (given.has(1) && given[1].integer() != 10)
    return meter.fail("the filter 'int' is only known for the base 10 here");
  if (subject.isUndefined())
    return meter.fail("the filter 'int' is given something undefined");
  if (subject.integer())
    return *subject.integer();
  if (subject.isReal())
    return wholeOf(meter, *subject.number()).value_or(otherwise);
  if (!subject.text())
    return otherwise;
  meter.spendOnCharacters(subject.text()->size());
  const std::string text = plainNumber(*subject.text());
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size())
    return value;
  const auto real = realOf(text);
  return real ? wholeOf(meter, *real).value_or(otherwise) : otherwise;
}

Value toReal(Meter &meter, const Value &subject, const Given &given) {
  if (subject.isUndefined())
    return meter.fail("the filter 'float' is given something undefined");
  if (subject.text())
    meter.spendOnCharacters(subject.text()->size());
  const auto real = subject.text() ? realOf(plainNumber(*subject.text())) : subject.number();
  return real ? Value(*real) : given.has(0) ? given[0] : Value(0.0);
}

Value absolute(Meter &meter, const Value &subject, const Given &) {
  if (subject.isReal())
    return std::abs(*subject.number());
  if (!subject.integer() || *subject.integer() == INT64_MIN)
    return meter.fail(describe("the filter 'abs'", subject));
  return std::abs(*subject.integer());
}

Value rounded(Meter &meter, const Value &subject, const Given &given) {
  const auto digits = given.has(0) ? given[0].integer() : 0;
  const std::string method = given[1].text() ? *given[1].text() : "common";
  if (!subject.isNumber() || !digits || *digits < 0 || *digits > 100 ||
      (method != "common" && method != "ceil" && method != "floor"))
    return meter.fail(describe("the filter 'round' with these arguments", subject));
  if (!subject.isReal())
    return method == "common" ? Value(*subject.integer()) : Value(*subject.number());
  const double value = *subject.number(), unit = std::pow(10.0, double(*digits));
  if (method != "common")
    return (method == "ceil" ? std::ceil(value * unit) : std::floor(value * unit)) / unit;
  // The digits are of the exact value, which a product with the unit is not.
  const std::string text = fmt::format("{:.{}f}", value, *digits);
  meter.spend(static_cast<int64_t>(text.size()));
  double nearest = 0;
  std::from_chars(text.data(), text.data() + text.size(), nearest);
  return nearest;
}

Value toJson(Meter &meter, const Value &subject, const Given &given) {
  JsonStyle style;
  style.isAscii = given.isTrue(0);
  style.sortsKeys = given.isTrue(3);
  if (const std::string *text = given[1].text())
    style.indent = *text;
  else if (const auto width = given[1].integer();
           width && meter.fits(size_t(std::max<int64_t>(*width, 0))))
    style.indent = std::string(static_cast<size_t>(std::max<int64_t>(*width, 0)), ' ');
  else if (given.has(1) && !given[1].isNone())
    return meter.fail("the filter 'tojson' takes a number or a text as 'indent'");
  style.comma = style.indent ? "," : ", ";
  style.colon = ": ";
  if (given.has(2) && !given[2].isNone()) {
    const Sequence *pair = given[2].sequence();
    if (!pair || pair->members.size() != 2 || !pair->members[0].text() || !pair->members[1].text())
      return meter.fail("the filter 'tojson' takes two texts as 'separators'");
    style.comma = *pair->members[0].text();
    style.colon = *pair->members[1].text();
  }
  return jsonOf(meter, subject, style);
}

} // namespace

std::span<const Callable> textFilters() {
  static const Callable filters[] = {
      {"default", {"default_value", "boolean"}, 0, orDefault},
      {"d", {"default_value", "boolean"}, 0, orDefault},
      {"string", {}, 0, asText},
      {"safe", {}, 0, asText},
      {"trim", {"chars"}, 0, trim},
      {"upper", {}, 0, upper},
      {"lower", {}, 0, lower},
      {"capitalize", {}, 0, capitalize},
      {"title", {}, 0, title},
      {"replace", {"old", "new", "count"}, 2, replace},
      {"center", {"width"}, 0, center},
      {"indent", {"width", "first", "blank"}, 0, indent},
      {"wordcount", {}, 0, wordCount},
      {"int", {"default", "base"}, 0, toInteger},
      {"float", {"default"}, 0, toReal},
      {"abs", {}, 0, absolute},
      {"round", {"precision", "method"}, 0, rounded},
      {"tojson", {"ensure_ascii", "indent", "separators", "sort_keys"}, 0, toJson},
  };
  return filters;
}

namespace {

Value applied(Meter &meter, const std::string &name, const Value &subject, Arguments &arguments) {
  if (auto made = filterByAnother(meter, name, subject, arguments))
    return *std::move(made);
  for (const auto filters : {textFilters(), listFilters()})
    for (const Callable &one : filters)
      if (one.name == name) {
        const auto given = bindArguments(meter, arguments, "filter", one);
        return given && !meter.failure ? one.run(meter, subject, *given) : Value();
      }
  return meter.fail(fmt::format("the filter {} is not known here", inQuotes(name)));
}

} // namespace

Value filter(Meter &meter, const std::string &name, const Value &subject, Arguments arguments) {
  constexpr int deepest = 20;
  if (meter.filters >= deepest)
    return meter.fail(fmt::format("filters call each other more than {} deep", deepest));
  meter.spend(subject.width());
  ++meter.filters;
  Value made = applied(meter, name, subject, arguments);
  --meter.filters;
  return made;
}

} // namespace heddle::jinja
