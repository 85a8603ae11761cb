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

Value strip(Meter &meter, const Value &subject, const Given &given, Side side) {
  if (!given.has(0) || given[0].isNone())
    return stripped(*subject.text(), std::nullopt, side);
  if (!given[0].text())
    return refuse(meter, "strip", given[0]);
  meter.spend(given[0].width() * 8);
  return stripped(*subject.text(), *given[0].text(), side);
}

Value stripBoth(Meter &meter, const Value &subject, const Given &given) {
  return strip(meter, subject, given, Side::both);
}
Value stripLeft(Meter &meter, const Value &subject, const Given &given) {
  return strip(meter, subject, given, Side::left);
}
Value stripRight(Meter &meter, const Value &subject, const Given &given) {
  return strip(meter, subject, given, Side::right);
}

Value list(const std::vector<std::string> &parts) {
  return Value::list(Members(parts.begin(), parts.end()));
}

Value divide(Meter &meter, const Value &subject, const Given &given, bool fromRight) {
  const int64_t most = given.has(1) ? given[1].integer().value_or(INT64_MIN) : -1;
  const bool atSpaces = !given.has(0) || given[0].isNone();
  if (most == INT64_MIN)
    return refuse(meter, "split", given[1]);
  if (!atSpaces && (!given[0].text() || given[0].text()->empty()))
    return given[0].text() ? meter.fail("the method 'split' is given an empty text")
                           : refuse(meter, "split", given[0]);
  if (!meter.spend(subject.width() * given[0].width()))
    return {};
  return list(split(*subject.text(),
                    atSpaces ? std::nullopt : std::optional<std::string_view>(*given[0].text()),
                    most, fromRight));
}

Value splitFromLeft(Meter &meter, const Value &subject, const Given &given) {
  return divide(meter, subject, given, false);
}
Value splitFromRight(Meter &meter, const Value &subject, const Given &given) {
  return divide(meter, subject, given, true);
}

Value lines(Meter &, const Value &subject, const Given &given) {
  return list(splitLines(*subject.text(), given.isTrue(0)));
}

Value upper(Meter &, const Value &subject, const Given &) { return upperCase(*subject.text()); }
Value lower(Meter &, const Value &subject, const Given &) { return lowerCase(*subject.text()); }
Value title(Meter &, const Value &subject, const Given &) { return titleCase(*subject.text()); }
Value capitalize(Meter &, const Value &subject, const Given &) {
  return capitalized(*subject.text());
}

/// Whether the text begins, or ends, with a text or one of several.
Value touches(Meter &meter, const Value &subject, const Given &given, bool atEnd) {
  const std::string &text = *subject.text();
  const Sequence *several = given[0].sequence();
  if (!given[0].text() && !(several && several->kind == Sequence::Kind::tuple))
    return refuse(meter, atEnd ? "endswith" : "startswith", given[0]);
  for (const Value &one : several ? several->members : Members{given[0]}) {
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
  if (!meter.spend(subject.width() * given[0].width()))
    return {};
  const auto places = placesOf(text, from, given[2].integer().value_or(-1));
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
  if (!meter.spend(subject.width() * given[0].width()))
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
  if (!meter.spend(subject.width() * given[0].width()))
    return {};
  return static_cast<int64_t>(placesOf(*subject.text(), *given[0].text(), -1).size());
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
  if (!meter.spend(subject.width() * given[0].width()))
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

Value isDigits(Meter &, const Value &subject, const Given &) {
  return allCharacters(*subject.text(), isDecimal);
}
Value isLetters(Meter &, const Value &subject, const Given &) {
  return allCharacters(*subject.text(), isLetter);
}
Value isLettersOrDigits(Meter &, const Value &subject, const Given &) {
  return allCharacters(*subject.text(), [](char32_t c) { return isLetter(c) || isDecimal(c); });
}
Value isSpaces(Meter &, const Value &subject, const Given &) {
  return allCharacters(*subject.text(), isSpaceCharacter);
}
Value isUpper(Meter &, const Value &subject, const Given &) { return isAllUpper(*subject.text()); }
Value isLower(Meter &, const Value &subject, const Given &) { return isAllLower(*subject.text()); }

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
    {"strip", {"-"}, 0, stripBoth},
    {"lstrip", {"-"}, 0, stripLeft},
    {"rstrip", {"-"}, 0, stripRight},
    {"split", {"sep", "maxsplit"}, 0, splitFromLeft},
    {"rsplit", {"sep", "maxsplit"}, 0, splitFromRight},
    {"splitlines", {"keepends"}, 0, lines},
    {"upper", {}, 0, upper},
    {"lower", {}, 0, lower},
    {"title", {}, 0, title},
    {"capitalize", {}, 0, capitalize},
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
    {"isdigit", {}, 0, isDigits},
    {"isalpha", {}, 0, isLetters},
    {"isalnum", {}, 0, isLettersOrDigits},
    {"isspace", {}, 0, isSpaces},
    {"isupper", {}, 0, isUpper},
    {"islower", {}, 0, isLower},
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
