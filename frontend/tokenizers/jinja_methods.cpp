// The methods of Python's texts, dictionaries and lists.
#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_functions.h"
#include "frontend/tokenizers/jinja_text.h"
#include "frontend/tokenizers/utf8.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

namespace {

constexpr size_t nowhere = std::string::npos;

Value refuse(Meter &meter, const char *method, const Value &argument) {
  return meter.fail(fmt::format("the method '{}' does not take {}", method, argument.kind()));
}

template <Side side>
Value stripSide(Meter &meter, const Value &subject, const Given &given) {
  return strip(meter, *subject.text(), given.has(0) ? given[0] : Value(nullptr), side);
}

Value divide(Meter &meter, const Value &subject, const Given &given, bool fromRight) {
  const int64_t most = given.has(1) ? given[1].integer().value_or(INT64_MIN) : -1;
  const bool atSpaces = !given.has(0) || given[0].isNone();
  if (most == INT64_MIN)
    return refuse(meter, "split", given[1]);
  if (!atSpaces && (!given[0].text() || given[0].text()->empty()))
    return given[0].text() ? meter.fail("the method 'split' is given an empty text")
                           : refuse(meter, "split", given[0]);
  const std::string &text = *subject.text();
  if (!(atSpaces ? meter.spendOnCharacters(text.size())
                 : meter.spendOnSearch(text, *given[0].text())))
    return {};
  const auto parts =
      split(text, atSpaces ? std::nullopt : std::optional<std::string_view>(*given[0].text()),
            most < 0 ? mostSize : std::min(most, mostSize), fromRight);
  return meter.fitsMembers(parts.size()) ? Value::list(Members(parts.begin(), parts.end()))
                                         : Value();
}

Value splitFromLeft(Meter &meter, const Value &subject, const Given &given) {
  return divide(meter, subject, given, false);
}
Value splitFromRight(Meter &meter, const Value &subject, const Given &given) {
  return divide(meter, subject, given, true);
}

Value lines(Meter &meter, const Value &subject, const Given &given) {
  Members lines;
  meter.spendOnCharacters(subject.text()->size());
  for (std::string_view rest = *subject.text(); !rest.empty() && !meter.failure;) {
    lines.emplace_back(takeLine(rest, given.isTrue(0)));
    meter.check(lines.back());
    meter.spend(1);
  }
  return meter.fitsMembers(lines.size()) ? Value::list(std::move(lines)) : Value();
}

template <std::string (*convert)(std::string_view)>
Value converted(Meter &meter, const Value &subject, const Given &) {
  return convert(charactersOf(meter, subject));
}

/// Whether the text begins, or ends, with a text or one of several.
Value touches(Meter &meter, const Value &subject, const Given &given, bool atEnd) {
  const std::string &text = *subject.text();
  const Sequence *several = given[0].sequence();
  if (!given[0].text() && !(several && several->kind == Sequence::Kind::tuple))
    return refuse(meter, atEnd ? "endswith" : "startswith", given[0]);
  for (const Value &one :
       several ? std::span(several->members) : std::span(given.values).first(1)) {
    if (!one.text())
      return refuse(meter, atEnd ? "endswith" : "startswith", one);
    meter.spend(one.width());
    if (atEnd ? text.ends_with(*one.text()) : text.starts_with(*one.text()))
      return true;
  }
  return false;
}

Value startsWith(Meter &meter, const Value &subject, const Given &given) {
  return touches(meter, subject, given, false);
}
Value endsWith(Meter &meter, const Value &subject, const Given &given) {
  return touches(meter, subject, given, true);
}

Value removePrefix(Meter &meter, const Value &subject, const Given &given) {
  if (!given[0].text())
    return refuse(meter, "removeprefix", given[0]);
  const std::string &text = *subject.text(), &cut = *given[0].text();
  return text.starts_with(cut) ? Value(text.substr(cut.size())) : subject;
}

Value removeSuffix(Meter &meter, const Value &subject, const Given &given) {
  if (!given[0].text())
    return refuse(meter, "removesuffix", given[0]);
  const std::string &text = *subject.text(), &cut = *given[0].text();
  return text.ends_with(cut) ? Value(text.substr(0, text.size() - cut.size())) : subject;
}

/// Where `from` is found in the text, at most `most` times.
std::vector<size_t> placesOf(const std::string &text, const std::string &from, int64_t most) {
  std::vector<size_t> places;
  const auto isFull = [&] { return most >= 0 && std::ssize(places) >= most; };
  if (from.empty()) { // between all characters
    for (size_t at = 0; at <= text.size() && !isFull();
         at += at < text.size() ? characterLength(std::string_view(text).substr(at)) : 1)
      places.push_back(at);
    return places;
  }
  for (size_t at = 0; !isFull() && (at = text.find(from, at)) != nowhere; at += from.size())
    places.push_back(at);
  return places;
}

Value replace(Meter &meter, const Value &subject, const Given &given) {
  if (!given[0].text() || !given[1].text())
    return refuse(meter, "replace", given[given[0].text() ? 1 : 0]);
  if (given.has(2) && !given[2].integer())
    return refuse(meter, "replace", given[2]);
  const std::string &text = *subject.text(), &from = *given[0].text(), &to = *given[1].text();
  if (!meter.spendOnSearch(text, from))
    return {};
  const auto places = placesOf(text, from, given[2].integer().value_or(-1));
  meter.spend(std::ssize(places));
  if (!meter.fits(text.size() + places.size() * to.size()))
    return {};
  std::string made;
  size_t behind = 0;
  for (const size_t place : places) {
    made.append(text, behind, place - behind) += to;
    behind = place + from.size();
  }
  return made.append(text, behind);
}

/// The number of the character where `given` is found, or -1.
Value search(Meter &meter, const Value &subject, const Given &given, bool fromRight) {
  if (!given[0].text())
    return refuse(meter, "find", given[0]);
  if (!meter.spendOnSearch(*subject.text(), *given[0].text()))
    return {};
  const std::string &text = *subject.text();
  const size_t found = fromRight ? text.rfind(*given[0].text()) : text.find(*given[0].text());
  if (found == nowhere)
    return -1;
  return static_cast<int64_t>(countCharacters(std::string_view(text).substr(0, found)));
}

Value find(Meter &meter, const Value &subject, const Given &given) {
  return search(meter, subject, given, false);
}
Value findLast(Meter &meter, const Value &subject, const Given &given) {
  return search(meter, subject, given, true);
}
Value indexInText(Meter &meter, const Value &subject, const Given &given) {
  const Value found = search(meter, subject, given, false);
  return found.integer() == -1 ? meter.fail("the method 'index' finds nothing") : found;
}

Value countInText(Meter &meter, const Value &subject, const Given &given) {
  if (!given[0].text())
    return refuse(meter, "count", given[0]);
  if (!meter.spendOnSearch(*subject.text(), *given[0].text()))
    return {};
  const auto count = std::ssize(placesOf(*subject.text(), *given[0].text(), -1));
  meter.spend(count);
  return static_cast<int64_t>(count);
}

Value join(Meter &meter, const Value &subject, const Given &given) {
  std::string joined;
  const auto parts = membersOf(meter, given[0]);
  for (const Value &part : parts->members) {
    if (!part.text())
      return refuse(meter, "join", part);
    if (&part != &parts->members.front())
      joined += *subject.text();
    joined += *part.text();
    if (joined.size() > longestText)
      meter.fits(joined.size());
    if (!meter.spend(part.width()))
      return {};
  }
  return meter.fits(joined.size()) ? Value(std::move(joined)) : Value();
}

Value partition(Meter &meter, const Value &subject, const Given &given, bool fromRight) {
  if (!given[0].text() || given[0].text()->empty())
    return refuse(meter, "partition", given[0]);
  if (!meter.spendOnSearch(*subject.text(), *given[0].text()))
    return {};
  const std::string &text = *subject.text(), &sign = *given[0].text();
  const size_t found = fromRight ? text.rfind(sign) : text.find(sign);
  if (found == nowhere)
    return fromRight ? Value::tuple({"", "", subject}) : Value::tuple({subject, "", ""});
  return Value::tuple({text.substr(0, found), sign, text.substr(found + sign.size())});
}

Value partitionFromLeft(Meter &meter, const Value &subject, const Given &given) {
  return partition(meter, subject, given, false);
}
Value partitionFromRight(Meter &meter, const Value &subject, const Given &given) {
  return partition(meter, subject, given, true);
}

enum class Padding { left, right, both, zeros };

/// As many characters as are asked for, by padding on one side or both.
template <Padding padding>
Value padded(Meter &meter, const Value &subject, const Given &given) {
  const std::string &text = *subject.text();
  const Value fill = padding == Padding::zeros ? Value("0") : given.has(1) ? given[1] : Value(" ");
  if (!given[0].integer() || !fill.text() || countCharacters(*fill.text()) != 1)
    return refuse(meter, "center", given[given[0].integer() ? 1 : 0]);
  const int64_t width = std::clamp<int64_t>(*given[0].integer(), 0, int64_t{1} << 32);
  const auto more = std::max<int64_t>(width - static_cast<int64_t>(countCharacters(text)), 0);
  if (!meter.fits(text.size() + static_cast<size_t>(more) * fill.text()->size()))
    return {};
  const int64_t before = padding == Padding::right  ? 0
                         : padding == Padding::both ? more / 2 + (more & width & 1)
                                                    : more;
  const size_t sign =
      padding == Padding::zeros && (text.starts_with('+') || text.starts_with('-')) ? 1 : 0;
  const auto fills = [&](int64_t count) {
    std::string made;
    for (int64_t i = 0; i < count; ++i)
      made += *fill.text();
    return made;
  };
  return text.substr(0, sign) + fills(before) + text.substr(sign) + fills(more - before);
}

template <bool (*holds)(char32_t)>
Value areAll(Meter &meter, const Value &subject, const Given &) {
  return allCharacters(charactersOf(meter, subject), holds);
}
template <bool (*isAll)(std::string_view)>
Value isOfCase(Meter &meter, const Value &subject, const Given &) {
  return isAll(charactersOf(meter, subject));
}

Value view(Members members) {
  return std::make_shared<Sequence>(Sequence::Kind::view, std::move(members));
}

Value keys(Meter &, const Value &subject, const Given &) {
  Members all;
  for (const auto &[key, value] : subject.dict()->entries)
    all.push_back(key);
  return view(std::move(all));
}

Value values(Meter &, const Value &subject, const Given &) {
  Members all;
  for (const auto &[key, value] : subject.dict()->entries)
    all.push_back(value);
  return view(std::move(all));
}

Value items(Meter &, const Value &subject, const Given &) {
  Members all;
  for (const auto &[key, value] : subject.dict()->entries)
    all.push_back(Value::tuple({key, value}));
  return view(std::move(all));
}

Value get(Meter &meter, const Value &subject, const Given &given) {
  if (!canBeKey(given[0]) && !given[0].isUndefined())
    return refuse(meter, "get", given[0]);
  const Value *found = subject.dict()->find(given[0]);
  return found ? *found : given.has(1) ? given[1] : Value(nullptr);
}

Value copy(Meter &, const Value &subject, const Given &) { return subject; }

Value indexInList(Meter &meter, const Value &subject, const Given &given) {
  const Members &members = subject.sequence()->members;
  for (size_t i = 0; i < members.size(); ++i)
    if (isEqual(meter, members[i], given[0]))
      return static_cast<int64_t>(i);
  return meter.fail("the method 'index' finds nothing");
}

Value countInList(Meter &meter, const Value &subject, const Given &given) {
  return static_cast<int64_t>(
      std::ranges::count_if(subject.sequence()->members,
                            [&](const Value &one) { return isEqual(meter, one, given[0]); }));
}

/// Templates are run so that they cannot change what they are given.
Value change(Meter &meter, const Value &subject, const Given &) {
  return meter.fail(
      fmt::format("{} would be changed, which a template may not do", subject.kind()));
}

const std::vector<Callable> textMethods = {
    {"strip", {"-"}, 0, stripSide<Side::both>},
    {"lstrip", {"-"}, 0, stripSide<Side::left>},
    {"rstrip", {"-"}, 0, stripSide<Side::right>},
    {"split", {"sep", "maxsplit"}, 0, splitFromLeft},
    {"rsplit", {"sep", "maxsplit"}, 0, splitFromRight},
    {"splitlines", {"keepends"}, 0, lines},
    {"upper", {}, 0, converted<upperCase>},
    {"lower", {}, 0, converted<lowerCase>},
    {"title", {}, 0, converted<titleCase>},
    {"capitalize", {}, 0, converted<capitalized>},
    {"startswith", {"-"}, 1, startsWith},
    {"endswith", {"-"}, 1, endsWith},
    {"removeprefix", {"-"}, 1, removePrefix},
    {"removesuffix", {"-"}, 1, removeSuffix},
    {"replace", {"-", "-", "-"}, 2, replace},
    {"find", {"-"}, 1, find},
    {"rfind", {"-"}, 1, findLast},
    {"index", {"-"}, 1, indexInText},
    {"count", {"-"}, 1, countInText},
    {"join", {"-"}, 1, join},
    {"partition", {"-"}, 1, partitionFromLeft},
    {"rpartition", {"-"}, 1, partitionFromRight},
    {"center", {"-", "-"}, 1, padded<Padding::both>},
    {"ljust", {"-", "-"}, 1, padded<Padding::right>},
    {"rjust", {"-", "-"}, 1, padded<Padding::left>},
    {"zfill", {"-"}, 1, padded<Padding::zeros>},
    {"isdigit", {}, 0, areAll<isDecimal>},
    {"isalpha", {}, 0, areAll<isLetter>},
    {"isalnum", {}, 0, areAll<isLetterOrNumber>},
    {"isspace", {}, 0, areAll<isSpaceCharacter>},
    {"isupper", {}, 0, isOfCase<isAllUpper>},
    {"islower", {}, 0, isOfCase<isAllLower>},
};

const std::vector<Callable> dictMethods = {
    {"keys", {}, 0, keys},
    {"values", {}, 0, values},
    {"items", {}, 0, items},
    {"get", {"-", "-"}, 1, get},
    {"copy", {}, 0, copy},
    {"clear", {}, 0, change},
    {"pop", {"-", "-"}, 0, change},
    {"popitem", {}, 0, change},
    {"setdefault", {"-", "-"}, 0, change},
    {"update", {"-"}, 0, change},
};

const std::vector<Callable> listMethods = {
    {"index", {"-"}, 1, indexInList},
    {"count", {"-"}, 1, countInList},
    {"copy", {}, 0, copy},
    {"append", {"-"}, 0, change},
    {"extend", {"-"}, 0, change},
    {"insert", {"-", "-"}, 0, change},
    {"remove", {"-"}, 0, change},
    {"pop", {"-"}, 0, change},
    {"clear", {}, 0, change},
    {"reverse", {}, 0, change},
    {"sort", {"-", "-"}, 0, change},
};

const Callable *findMethod(const Value &value, std::string_view name) {
  const Sequence *list = value.sequence();
  const bool isList = list && list->kind <= Sequence::Kind::range;
  const std::vector<Callable> *methods = value.text()   ? &textMethods
                                         : value.dict() ? &dictMethods
                                         : isList       ? &listMethods
                                                        : nullptr;
  if (!methods)
    return nullptr;
  const auto found = std::ranges::find(*methods, name, &Callable::name);
  const bool isOfLists =
      list && list->kind != Sequence::Kind::list && name != "index" && name != "count";
  return found == methods->end() || isOfLists ? nullptr : &*found;
}

} // namespace

Value strip(Meter &meter, const std::string &text, const Value &characters, Side side) {
  if (!characters.isNone() && !characters.text())
    return meter.fail(fmt::format("a text is stripped of {}", characters.kind()));
  const std::string *cut = characters.text();
  if (cut && !meter.spendOnCharacters(cut->size()))
    return {};
  const std::string_view left =
      stripped(text, cut ? std::optional<std::string_view>(*cut) : std::nullopt, side);
  meter.spendOnCharacters(text.size() - left.size());
  return left;
}

bool hasMethod(const Value &value, std::string_view name) { return findMethod(value, name); }

Value callMethod(Meter &meter, const Method &method, const Arguments &arguments) {
  meter.spend(method.receiver.width());
  const Callable *callable = findMethod(method.receiver, method.name);
  if (!callable)
    return meter.fail(fmt::format("the method {} is not known here for {}", inQuotes(method.name),
                                  method.receiver.kind()));
  const auto given = bindArguments(meter, arguments, "method", *callable);
  return given && !meter.failure ? callable->run(meter, method.receiver, *given) : Value();
}

} // namespace heddle::jinja
