#include "frontend/tokenizers/jinja_functions.h"
#include "frontend/tokenizers/jinja_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace heddle::jinja {

const char *spelling(Operator sign) {
  constexpr const char *spellings[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return spellings[static_cast<size_t>(sign)];
}

std::string describe(const std::string &name, const Value &value) {
  return fmt::format("{} is not known for {}", name, value.kind());
}

namespace {

bool areEqual(Meter &meter, const Members &left, const Members &right) {
  return left.size() == right.size() &&
         std::ranges::equal(left, right, [&](const Value &one, const Value &other) {
           return isEqual(meter, one, other);
         });
}

bool areEqual(Meter &meter, const Dict &left, const Dict &right) {
  if (left.entries.size() != right.entries.size())
    return false;
  return std::ranges::all_of(left.entries, [&](const auto &entry) {
    meter.spend(entry.first.width());
    const Value *other = right.find(entry.first);
    return other && isEqual(meter, entry.second, *other);
  });
}

Value unknown(Meter &meter, Operator sign, const Value &left, const Value &right) {
  return meter.fail(fmt::format("the operator '{}' is not known for {} and {}", spelling(sign),
                                left.kind(), right.kind()));
}

/// What is left of `a` when it is divided by `b`, with the sign of `b`.
double restOf(double a, double b) {
  const double rest = std::fmod(a, b);
  if (rest == 0)
    return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

Value calculateReal(Meter &meter, Operator sign, double a, double b) {
  const bool divides =
      sign == Operator::divide || sign == Operator::floorDivide || sign == Operator::modulo;
  if (divides && b == 0)
    return meter.fail("a number is divided by 0");
  switch (sign) {
  case Operator::add:
    return a + b;
  case Operator::subtract:
    return a - b;
  case Operator::multiply:
    return a * b;
  case Operator::divide:
    return a / b;
  case Operator::floorDivide: {
    const double quotient = (a - restOf(a, b)) / b, below = std::floor(quotient);
    return quotient == 0 ? std::copysign(0.0, a / b) : quotient - below > 0.5 ? below + 1 : below;
  }
  case Operator::modulo:
    return restOf(a, b);
  default:
    if ((a == 0 && b < 0) || (a < 0 && b != std::floor(b) && std::isfinite(b)))
      return meter.fail("a number has no such power");
    const double power = std::pow(a, b);
    return std::isinf(power) && std::isfinite(a) && std::isfinite(b)
               ? meter.fail("a power is beyond the largest number")
               : Value(power);
  }
}

/// The real that is next to the quotient: with all of its bits and whether more follow, before it
/// is rounded once.
double quotientOf(int64_t a, int64_t b) {
  constexpr int64_t exact = int64_t{1} << 53;
  if (std::max({a, b, -exact}) <= exact && std::min({a, b, exact}) >= -exact)
    return static_cast<double>(a) / static_cast<double>(b);
  const auto magnitude = [](int64_t value) {
    return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  };
  if (a == 0)
    return 0;
  const int shift = 63 + std::countl_zero(magnitude(a));
  const auto dividend = static_cast<unsigned __int128>(magnitude(a)) << shift;
  auto quotient = dividend / magnitude(b);
  quotient |= dividend % magnitude(b) != 0 ? 1 : 0;
  const double size = std::ldexp(static_cast<double>(quotient), -shift);
  return (a < 0) != (b < 0) ? -size : size;
}

/// Nothing where the power is too large.
std::optional<int64_t> integerPower(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1 && __builtin_mul_overflow(result, base, &result))
      return std::nullopt;
    if (exponent > 1 && __builtin_mul_overflow(base, base, &base))
      return std::nullopt;
  }
  return result;
}

Value calculateInteger(Meter &meter, Operator sign, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflows = false;
  switch (sign) {
  case Operator::add:
    overflows = __builtin_add_overflow(a, b, &result);
    break;
  case Operator::subtract:
    overflows = __builtin_sub_overflow(a, b, &result);
    break;
  case Operator::multiply:
    overflows = __builtin_mul_overflow(a, b, &result);
    break;
  case Operator::power:
    if (b < 0)
      return calculateReal(meter, sign, double(a), double(b));
    if (const auto power = integerPower(a, b))
      return *power;
    overflows = true;
    break;
  default: {
    if (b == 0)
      return meter.fail("a number is divided by 0");
    overflows = b == -1 && a == INT64_MIN;
    if (overflows)
      break;
    // Towards minus infinity, as Python does.
    const bool isBelow = a % b != 0 && (a < 0) != (b < 0);
    result = sign == Operator::modulo ? a % b + (isBelow ? b : 0) : a / b - (isBelow ? 1 : 0);
  }
  }
  return overflows ? meter.fail("makes a number beyond 64 bits") : Value(result);
}

/// A text or a list, `count` times.
Value repeated(Meter &meter, const Value &value, int64_t count) {
  const auto times = static_cast<size_t>(std::clamp<int64_t>(count, 0, mostSize * 64));
  if (const std::string *text = value.text()) {
    if (!meter.fits(text->size() * times))
      return {};
    std::string made;
    for (size_t i = 0; i < times && !text->empty(); ++i)
      made += *text;
    return made;
  }
  const Sequence &list = *value.sequence();
  if (!meter.fitsMembers(list.members.size() * times))
    return {};
  Members made;
  for (size_t i = 0; i < times && !list.members.empty(); ++i)
    made.insert(made.end(), list.members.begin(), list.members.end());
  return std::make_shared<Sequence>(list.kind, std::move(made));
}

bool isRepeatable(const Value &value) {
  return value.text() || (value.sequence() && value.sequence()->kind <= Sequence::Kind::tuple);
}

Value added(Meter &meter, const Value &left, const Value &right) {
  const Sequence *one = left.sequence(), *other = right.sequence();
  if (left.text() && right.text())
    return meter.fits(left.text()->size() + right.text()->size())
               ? Value(*left.text() + *right.text())
               : Value();
  if (!one || !other || one->kind != other->kind || !isRepeatable(left))
    return unknown(meter, Operator::add, left, right);
  if (!meter.fitsMembers(one->members.size() + other->members.size()))
    return {};
  Members both = one->members;
  both.insert(both.end(), other->members.begin(), other->members.end());
  return std::make_shared<Sequence>(one->kind, std::move(both));
}

} // namespace

bool isEqual(Meter &meter, const Value &left, const Value &right) {
  if (!meter.spend(1))
    return false;
  if (left.isNumber() && right.isNumber())
    return compareNumbers(left, right) == 0;
  if (left.text() && right.text())
    return left.text()->size() == right.text()->size() && meter.spend(left.width()) &&
           *left.text() == *right.text();
  const Sequence *one = left.sequence(), *other = right.sequence();
  if (one && other && one->kind == other->kind && one->isIndexed())
    return areEqual(meter, one->members, other->members);
  if (left.dict() && right.dict())
    return areEqual(meter, *left.dict(), *right.dict());
  return left.isSameThing(right);
}

std::partial_ordering compare(Meter &meter, const Value &left, const Value &right) {
  if (!meter.spend(1))
    return std::partial_ordering::equivalent;
  if (left.isNumber() && right.isNumber())
    return compareNumbers(left, right);
  if (left.text() && right.text()) {
    meter.spend(std::min(left.width(), right.width()));
    return *left.text() <=> *right.text();
  }
  const Sequence *one = left.sequence(), *other = right.sequence();
  if (one && other && one->kind == other->kind && isRepeatable(left)) {
    const size_t common = std::min(one->members.size(), other->members.size());
    for (size_t i = 0; i < common; ++i)
      if (!isEqual(meter, one->members[i], other->members[i]))
        return compare(meter, one->members[i], other->members[i]);
    return one->members.size() <=> other->members.size();
  }
  meter.fail(fmt::format("{} and {} have no order", left.kind(), right.kind()));
  return std::partial_ordering::equivalent;
}

bool isLess(Meter &meter, const Value &left, const Value &right) {
  return !meter.failure && compare(meter, left, right) < 0;
}

bool contains(Meter &meter, const Value &list, const Value &member) {
  if (list.isUndefined()) // what is undefined is empty
    return false;
  if (const Dict *dict = list.dict()) {
    if (!canBeKey(member) && !member.isUndefined())
      meter.fail(fmt::format("{} is no key of a dictionary", member.kind()));
    return meter.spend(member.width()) && dict->find(member);
  }
  if (list.text() && member.text()) {
    return meter.spendOnSearch(*list.text(), *member.text()) &&
           list.text()->find(*member.text()) != std::string::npos;
  }
  if (!list.sequence()) {
    meter.fail(
        fmt::format("the operator 'in' is not known for {} and {}", member.kind(), list.kind()));
    return false;
  }
  const auto members = membersOf(meter, list);
  return std::ranges::any_of(members->members,
                             [&](const Value &one) { return isEqual(meter, one, member); });
}

Value calculate(Meter &meter, Operator sign, const Value &left, const Value &right) {
  if (left.isNumber() && right.isNumber()) {
    if (sign == Operator::divide && left.integer() && right.integer() && *right.integer() != 0)
      return quotientOf(*left.integer(), *right.integer());
    if (left.isReal() || right.isReal() || sign == Operator::divide)
      return calculateReal(meter, sign, *left.number(), *right.number());
    return calculateInteger(meter, sign, *left.integer(), *right.integer());
  }
  if (sign == Operator::add)
    return added(meter, left, right);
  if (sign == Operator::multiply && isRepeatable(left) && right.integer())
    return repeated(meter, left, *right.integer());
  if (sign == Operator::multiply && isRepeatable(right) && left.integer())
    return repeated(meter, right, *left.integer());
  return unknown(meter, sign, left, right);
}

bool holds(Meter &meter, Operator sign, const Value &left, const Value &right) {
  if (sign == Operator::equal || sign == Operator::notEqual)
    return isEqual(meter, left, right) == (sign == Operator::equal);
  if (sign == Operator::in || sign == Operator::notIn)
    return contains(meter, right, left) == (sign == Operator::in);
  const auto order = compare(meter, left, right);
  return sign == Operator::less        ? order < 0
         : sign == Operator::greater   ? order > 0
         : sign == Operator::lessEqual ? order <= 0
                                       : order >= 0;
}

std::shared_ptr<Sequence> membersOf(Meter &meter, const Value &value) {
  Members members;
  if (Sequence *list = value.sequence()) {
    meter.spend(value.width());
    if (list->kind != Sequence::Kind::generator || !std::exchange(list->isUsed, true))
      return list->shared_from_this();
  } else if (const Dict *dict = value.dict()) {
    if (meter.fitsMembers(dict->entries.size()))
      for (const auto &[key, member] : dict->entries)
        members.push_back(key);
  } else if (const std::string *text = value.text()) {
    const CharacterPlaces places(*text);
    if (meter.fitsMembers(static_cast<size_t>(places.count())))
      for (int64_t i = 0; i < places.count(); ++i)
        members.emplace_back(places.at(i));
  } else if (!value.isUndefined()) {
    meter.fail(fmt::format("{} cannot be walked over", value.kind()));
  }
  return std::make_shared<Sequence>(Sequence::Kind::list, std::move(members));
}

Value elementOf(Meter &meter, const Value &value, const Value &key) {
  if (const Dict *dict = value.dict()) {
    const Value *found = meter.spend(key.width()) ? dict->find(key) : nullptr;
    return found ? *found : Value();
  }
  const Sequence *list = value.sequence();
  const std::string *text = value.text();
  if (value.isUndefined())
    return meter.fail("something undefined is asked for its parts");
  auto index = key.integer();
  if (!index || !(text || (list && list->isIndexed())))
    return {};
  if (text)
    meter.spend(value.width());
  const std::optional<CharacterPlaces> places =
      text ? std::optional<CharacterPlaces>(*text) : std::nullopt;
  const int64_t count = text ? places->count() : std::ssize(list->members);
  if (*index < 0)
    *index += count;
  if (*index < 0 || *index >= count)
    return {};
  return text ? Value(places->at(*index)) : list->members[static_cast<size_t>(*index)];
}

Value itemOf(Meter &meter, const Value &value, const Value &key) {
  const std::string *name = key.text();
  if (const Namespace *space = value.space()) {
    const Value *found = name ? space->find(*name) : nullptr;
    return found ? *found : Value();
  }
  Value found = elementOf(meter, value, key);
  const bool isKey = value.dict() && value.dict()->find(key);
  return found.isUndefined() && !isKey && name && hasMethod(value, *name)
             ? Value::method(value, *name)
             : found;
}

Value slice(Meter &meter, const Value &value, const Value &begin, const Value &end,
            const Value &step) {
  const Sequence *list = value.sequence();
  const std::string *text = value.text();
  if (!text && !(list && list->isIndexed()))
    return meter.fail(fmt::format("{} is sliced", value.kind()));
  for (const Value *bound : {&begin, &end, &step})
    if (!bound->isNone() && !bound->integer())
      return meter.fail(fmt::format("{} bounds a slice", bound->kind()));
  meter.spend(value.width());
  if (text)
    meter.spend(static_cast<int64_t>(text->size() / 16));
  const std::optional<CharacterPlaces> places =
      text ? std::optional<CharacterPlaces>(*text) : std::nullopt;
  const int64_t count = text ? places->count() : std::ssize(list->members);
  const int64_t by = step.integer().value_or(1);
  if (by == 0)
    return meter.fail("a slice has the step 0");
  const auto place = [&](const Value &bound, int64_t otherwise) {
    const auto index = bound.integer();
    if (!index)
      return otherwise;
    return std::clamp<int64_t>(*index < 0 ? *index + count : *index, by > 0 ? 0 : -1,
                               by > 0 ? count : count - 1);
  };
  const int64_t first = place(begin, by > 0 ? 0 : count - 1),
                last = place(end, by > 0 ? count : -1);
  std::string piece;
  Members members;
  const __int128 stride = by;
  for (__int128 i = first; !meter.failure && (by > 0 ? i < last : i > last); i += stride)
    if (text)
      piece += places->at(static_cast<int64_t>(i));
    else
      members.push_back(list->members[static_cast<size_t>(i)]);
  return text ? Value(std::move(piece))
              : Value(std::make_shared<Sequence>(list->kind, std::move(members)));
}

} // namespace heddle::jinja
