#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_filters.h"
#include "frontend/tokenizers/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <list>

namespace heddle::jinja {

namespace {

Value generator(Members members) {
  return std::make_shared<Sequence>(Sequence::Kind::generator, std::move(members));
}

bool isGenerator(const Value &value) { return value.sequence() && !value.sequence()->hasLength(); }

Value length(Meter &meter, const Value &subject, const Given &) {
  if (const std::string *text = subject.text())
    return static_cast<int64_t>(countCharacters(*text));
  if (subject.isUndefined())
    return 0;
  if (subject.dict() || (subject.sequence() && subject.sequence()->hasLength()))
    return subject.width() - 1;
  return meter.fail(describe("the filter 'length'", subject));
}

Value first(Meter &meter, const Value &subject, const Given &) {
  const auto members = membersOf(meter, subject);
  return members->members.empty() ? Value() : members->members.front();
}

Value last(Meter &meter, const Value &subject, const Given &) {
  if (isGenerator(subject))
    return meter.fail(describe("the filter 'last'", subject));
  const auto members = membersOf(meter, subject);
  return members->members.empty() ? Value() : members->members.back();
}

Value toList(Meter &meter, const Value &subject, const Given &) {
  return Value::list(membersOf(meter, subject)->members);
}

Value join(Meter &meter, const Value &subject, const Given &given) {
  const std::string separator = textOf(meter, given[0]);
  std::string joined;
  const auto list = membersOf(meter, subject);
  for (const Value &member : list->members) {
    if (&member != &list->members.front())
      joined += separator;
    joined += given.has(1) && !given[1].isNone()
                  ? textOf(meter, attributeOf(meter, member, given[1]))
                  : textOf(meter, member);
    if (joined.size() > longestText)
      meter.fits(joined.size());
    if (meter.failure)
      return {};
  }
  return meter.fits(joined.size()) ? Value(std::move(joined)) : Value();
}

Value reverse(Meter &meter, const Value &subject, const Given &) {
  if (subject.text())
    return slice(meter, subject, nullptr, nullptr, -1);
  if (isGenerator(subject) || subject.isUndefined())
    return isGenerator(subject) ? meter.fail(describe("the filter 'reverse'", subject))
                                : generator({});
  Members members = membersOf(meter, subject)->members;
  std::ranges::reverse(members);
  return generator(std::move(members));
}

Value items(Meter &meter, const Value &subject, const Given &) {
  if (subject.isUndefined())
    return generator({});
  if (!subject.dict())
    return meter.fail(describe("the filter 'items'", subject));
  Members members;
  for (const auto &[key, value] : subject.dict()->entries)
    members.push_back(Value::tuple({key, value}));
  return generator(std::move(members));
}

/// What members are compared by: a part of them, and texts without regard to case.
class Keys {
public:
  Keys(Meter &meter, const Value &caseSensitive, const Value &attribute)
      : meter(meter), isCaseSensitive(caseSensitive.isTrue()), attribute(attribute) {
    if (attribute.text() && attribute.text()->find(',') != std::string::npos)
      meter.fail("more than one attribute is not known here");
  }

  Value operator()(const Value &member) const {
    Value key = attribute.isUndefined() || attribute.isNone()
                    ? member
                    : attributeOf(meter, member, attribute);
    if (isCaseSensitive || !key.text() || !meter.spend(key.width()))
      return key;
    return lowerCase(*key.text());
  }

private:
  Meter &meter;
  bool isCaseSensitive;
  const Value &attribute;
};

struct Keyed {
  Value key, member;
};

/// A list, as its sort keeps what is alike in its order and bears an order that changes under way,
/// which the first failure does.
std::list<Keyed> keyed(Meter &meter, const Members &members, const Keys &keys) {
  std::list<Keyed> all;
  for (const Value &member : members) {
    if (meter.failure)
      break;
    all.push_back({keys(member), member});
  }
  return all;
}

void sortByKey(Meter &meter, std::list<Keyed> &all, bool isReversed) {
  all.sort([&](const Keyed &one, const Keyed &other) {
    return isReversed ? isLess(meter, other.key, one.key) : isLess(meter, one.key, other.key);
  });
}

Members membersOnly(std::list<Keyed> all) {
  Members members;
  for (Keyed &one : all)
    members.push_back(std::move(one.member));
  return members;
}

Value sort(Meter &meter, const Value &subject, const Given &given) {
  auto all = keyed(meter, membersOf(meter, subject)->members, Keys(meter, given[1], given[2]));
  sortByKey(meter, all, given.isTrue(0));
  return Value::list(membersOnly(std::move(all)));
}

Value dictSort(Meter &meter, const Value &subject, const Given &given) {
  const std::string by = given[1].text() ? *given[1].text() : "key";
  if (!subject.dict() || (by != "key" && by != "value"))
    return meter.fail(describe("the filter 'dictsort' with these arguments", subject));
  const Value place = by == "key" ? 0 : 1;
  Members pairs;
  for (const auto &[key, value] : subject.dict()->entries)
    pairs.push_back(Value::tuple({key, value}));
  auto all = keyed(meter, pairs, Keys(meter, given[0], place));
  sortByKey(meter, all, given.isTrue(2));
  return Value::list(membersOnly(std::move(all)));
}

Value unique(Meter &meter, const Value &subject, const Given &given) {
  const Value attribute = given[1];
  Members kept;
  std::map<Value, bool, KeyOrder> seen;
  for (Keyed &one :
       keyed(meter, membersOf(meter, subject)->members, Keys(meter, given[0], attribute))) {
    meter.spend(one.key.width());
    if (!canBeKey(one.key))
      return meter.fail(describe("the filter 'unique'", one.key));
    if (seen.emplace(one.key, true).second)
      kept.push_back(std::move(one.member));
  }
  return generator(std::move(kept));
}

Value extreme(Meter &meter, const Value &subject, const Given &given, bool isLargest) {
  auto all = keyed(meter, membersOf(meter, subject)->members, Keys(meter, given[0], given[1]));
  const Keyed *found = nullptr;
  for (const Keyed &one : all)
    if (!found ||
        (isLargest ? isLess(meter, found->key, one.key) : isLess(meter, one.key, found->key)))
      found = &one;
  return found ? found->member : Value();
}

Value smallest(Meter &meter, const Value &subject, const Given &given) {
  return extreme(meter, subject, given, false);
}

Value largest(Meter &meter, const Value &subject, const Given &given) {
  return extreme(meter, subject, given, true);
}

Value sum(Meter &meter, const Value &subject, const Given &given) {
  Value total = given.has(1) ? given[1] : Value(0);
  if (total.text())
    return meter.fail("the filter 'sum' does not join texts");
  for (const auto all = membersOf(meter, subject); const Value &member : all->members) {
    total = calculate(meter, Operator::add, total,
                      given.has(0) && !given[0].isNone() ? attributeOf(meter, member, given[0])
                                                         : member);
    if (meter.failure)
      return {};
  }
  return total;
}

/// The members of a list; of what is false, such as none, there are none.
std::shared_ptr<Sequence> membersIfTrue(Meter &meter, const Value &value) {
  return membersOf(meter, value.isTrue() ? value : Value());
}

/// Those members that pass a test, or fail it: themselves, or by a part of theirs.
Value select(Meter &meter, const Value &subject, Arguments &arguments, bool isWanted,
             bool byAttribute) {
  const auto takeFirst = [&] {
    Value taken = arguments.values.front();
    arguments.values.erase(arguments.values.begin());
    return taken;
  };
  if (byAttribute && arguments.values.empty())
    return meter.fail("the filters 'selectattr' and 'rejectattr' need an attribute");
  const Value attribute = byAttribute ? takeFirst() : Value();
  const Value name = arguments.values.empty() ? Value() : takeFirst();
  if (!name.isUndefined() && !name.text())
    return meter.fail(fmt::format("a test is named by a text, not {}", name.kind()));
  Members kept;
  for (const auto all = membersIfTrue(meter, subject); const Value &member : all->members) {
    const Value value = byAttribute ? attributeOf(meter, member, attribute) : member;
    const bool passes =
        meter.step() &&
        (name.text() ? test(meter, *name.text(), value, arguments) : value).isTrue();
    if (meter.failure)
      return {};
    if (passes == isWanted)
      kept.push_back(member);
  }
  return generator(std::move(kept));
}

/// A part of each member, or what a filter makes of each.
Value map(Meter &meter, const Value &subject, Arguments &arguments) {
  std::optional<Value> attribute, otherwise;
  std::string name;
  if (arguments.values.empty()) {
    attribute = arguments.take("attribute");
    otherwise = arguments.take("default");
    if (!attribute)
      return meter.fail("the filter 'map' needs a filter or an attribute");
    if (!arguments.named.empty())
      return meter.fail(fmt::format("the filter 'map' has no argument {} here",
                                    inQuotes(arguments.named[0].first)));
  } else if (const std::string *text = arguments.values[0].text()) {
    name = *text;
    arguments.values.erase(arguments.values.begin());
  } else {
    return meter.fail(fmt::format("the filter 'map' takes the name of a filter, not {}",
                                  arguments.values[0].kind()));
  }
  Members made;
  for (const auto all = membersIfTrue(meter, subject); const Value &member : all->members) {
    if (!meter.step())
      return {};
    made.push_back(attribute ? attributeOf(meter, member, *attribute, otherwise.value_or(nullptr))
                             : filter(meter, name, member, arguments));
    meter.check(made.back());
  }
  return generator(std::move(made));
}

} // namespace

Value attributeOf(Meter &meter, const Value &value, const Value &attribute,
                  const Value &otherwise) {
  const auto orOtherwise = [&](Value part) {
    return part.isUndefined() && !otherwise.isNone() ? otherwise : std::move(part);
  };
  if (!attribute.text())
    return orOtherwise(itemOf(meter, value, attribute));
  Value part = value;
  meter.spend(attribute.width());
  for (std::string_view rest = *attribute.text(); !meter.failure;) {
    const std::string_view name = rest.substr(0, rest.find('.'));
    int64_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    const bool isIndex = error == std::errc() && end == name.data() + name.size() && name[0] != '-';
    part = orOtherwise(itemOf(meter, part, isIndex ? Value(index) : Value(name)));
    if (name.size() == rest.size())
      break;
    rest.remove_prefix(name.size() + 1);
  }
  return part;
}

std::optional<Value> filterByAnother(Meter &meter, const std::string &name, const Value &subject,
                                     Arguments &arguments) {
  if (name == "map")
    return map(meter, subject, arguments);
  if (name == "select" || name == "reject")
    return select(meter, subject, arguments, name == "select", /*byAttribute=*/false);
  if (name == "selectattr" || name == "rejectattr")
    return select(meter, subject, arguments, name == "selectattr", /*byAttribute=*/true);
  return std::nullopt;
}

std::span<const Callable> listFilters() {
  static const Callable filters[] = {
      {"length", {}, 0, length},
      {"count", {}, 0, length},
      {"first", {}, 0, first},
      {"last", {}, 0, last},
      {"list", {}, 0, toList},
      {"join", {"d", "attribute"}, 0, join},
      {"reverse", {}, 0, reverse},
      {"items", {}, 0, items},
      {"sort", {"reverse", "case_sensitive", "attribute"}, 0, sort},
      {"dictsort", {"case_sensitive", "by", "reverse"}, 0, dictSort},
      {"unique", {"case_sensitive", "attribute"}, 0, unique},
      {"min", {"case_sensitive", "attribute"}, 0, smallest},
      {"max", {"case_sensitive", "attribute"}, 0, largest},
      {"sum", {"attribute", "start"}, 0, sum},
  };
  return filters;
}

} // namespace heddle::jinja
