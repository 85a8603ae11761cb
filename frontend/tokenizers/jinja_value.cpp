#include "frontend/tokenizers/jinja_value.h"

#include "frontend/tokenizers/jinja_run.h"

#include <algorithm>
#include <limits>

namespace heddle::jinja {

thread_local int64_t Counted::held = 0;

Value::Value(std::string value) : held(std::make_shared<const Text>(std::move(value))) {}

Value Value::list(Members members) {
  return std::make_shared<Sequence>(Sequence::Kind::list, std::move(members));
}

Value Value::tuple(Members members) {
  return std::make_shared<Sequence>(Sequence::Kind::tuple, std::move(members));
}

Value Value::dict(Entries entries) {
  Value made;
  made.held = std::make_shared<const Dict>(std::move(entries));
  return made;
}

Value Value::method(Value receiver, std::string name) {
  Value made;
  made.held = std::make_shared<const Method>(std::move(receiver), std::move(name));
  return made;
}

const std::string *Value::text() const {
  const Text *found = pointer<const Text>();
  return found ? &found->value : nullptr;
}

std::optional<int64_t> Value::integer() const {
  if (const auto *whole = std::get_if<int64_t>(&held))
    return *whole;
  if (const auto *truth = std::get_if<bool>(&held))
    return *truth ? 1 : 0;
  return std::nullopt;
}

std::optional<double> Value::number() const {
  if (const auto *real = std::get_if<double>(&held))
    return *real;
  if (const auto whole = integer())
    return static_cast<double>(*whole);
  return std::nullopt;
}

std::shared_ptr<Loop> Value::loop() const {
  const auto *found = std::get_if<std::shared_ptr<Loop>>(&held);
  return found ? *found : nullptr;
}

Namespace *Value::space() const {
  const auto *found = std::get_if<Namespace *>(&held);
  return found ? *found : nullptr;
}

std::optional<Function> Value::function() const {
  const auto *found = std::get_if<Function>(&held);
  return found ? std::optional(*found) : std::nullopt;
}

bool Value::isTrue() const {
  if (const auto value = number())
    return *value != 0;
  if (const std::string *value = text())
    return !value->empty();
  if (const Sequence *value = sequence())
    return !value->hasLength() || !value->members.empty();
  if (const Dict *value = dict())
    return !value->entries.empty();
  return !isUndefined() && !isNone();
}

int64_t Value::size() const {
  if (const Sequence *value = sequence())
    return value->size;
  if (const Dict *value = dict())
    return value->size;
  return text() ? width() : 1;
}

int64_t Value::width() const {
  size_t width = 0;
  if (const Sequence *value = sequence())
    width = value->members.size();
  else if (const Dict *value = dict())
    width = value->entries.size();
  else if (const std::string *value = text())
    width = value->size() / 64;
  return 1 + static_cast<int64_t>(width);
}

int Value::height() const {
  if (const Sequence *value = sequence())
    return value->height;
  if (const Dict *value = dict())
    return value->height;
  if (const Method *value = method())
    return value->receiver.height() + 1;
  const Loop *value = pointer<Loop>();
  return value && value->source ? value->source->height + 1 : 0;
}

bool Value::isSameThing(const Value &other) const {
  if (held.index() != other.held.index())
    return false;
  return std::visit(
      [&]<class T>(const T &one) {
        if constexpr (std::is_same_v<T, Undefined> || std::is_same_v<T, None>)
          return true;
        else
          return one == *std::get_if<T>(&other.held);
      },
      held);
}

const char *Value::kind() const {
  if (const Sequence *value = sequence())
    return value->kind == Sequence::Kind::list    ? "a list"
           : value->kind == Sequence::Kind::tuple ? "a tuple"
           : value->kind == Sequence::Kind::range ? "a range"
           : value->kind == Sequence::Kind::view  ? "a view of a dictionary"
                                                  : "a generator";
  return isUndefined() ? "something undefined"
         : isNone()    ? "none"
         : isBoolean() ? "a boolean"
         : isNumber()  ? "a number"
         : text()      ? "a text"
         : dict()      ? "a dictionary"
         : space()     ? "a namespace"
         : macro()     ? "a macro"
         : loop()      ? "a loop"
                       : "a function";
}

Sequence::Sequence(Kind kind, Members all)
    : Counted(sizeof(Sequence) + all.capacity() * sizeof(Value)), kind(kind),
      members(std::move(all)) {
  for (const Value &member : members) {
    size += member.size();
    height = std::max(height, member.height() + 1);
  }
}

std::partial_ordering compareNumbers(const Value &left, const Value &right) {
  static_assert(std::numeric_limits<long double>::digits >= 63);
  const auto exact = [](const Value &value) {
    return value.isReal() ? static_cast<long double>(*value.number())
                          : static_cast<long double>(*value.integer());
  };
  return exact(left) <=> exact(right);
}

bool KeyOrder::operator()(const Value &left, const Value &right) const {
  const auto rank = [](const Value &key) { return key.isNone() ? 0 : key.isNumber() ? 1 : 2; };
  if (rank(left) != rank(right))
    return rank(left) < rank(right);
  if (const std::string *text = left.text())
    return *text < *right.text();
  return !left.isNone() && compareNumbers(left, right) < 0;
}

namespace {
/// An entry, its place in the order of keys, and what the allocator adds.
constexpr size_t entryBytes = 2 * sizeof(Value) + 96;
} // namespace

Dict::Dict(Entries all)
    : Counted(sizeof(Dict) + all.capacity() * entryBytes), entries(std::move(all)) {
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto &[key, value] = entries[i];
    places.emplace(key, i);
    size += key.size() + value.size();
    height = std::max(height, value.height() + 1);
  }
}

const Value *Dict::find(const Value &key) const {
  if (!canBeKey(key))
    return nullptr;
  const auto found = places.find(key);
  return found == places.end() ? nullptr : &entries[found->second].second;
}

const Value *Namespace::find(std::string_view name) const {
  const auto found = variables.find(name);
  return found == variables.end() ? nullptr : &found->second;
}

void Namespace::set(const std::string &name, Value value) {
  if (variables.insert_or_assign(name, std::move(value)).second)
    grow(entryBytes + name.size());
}

bool canBeKey(const Value &value) {
  if (const auto number = value.number(); number && *number != *number)
    return false;
  return value.isNone() || value.isNumber() || value.text();
}

} // namespace heddle::jinja
