// Values of templates. Texts, lists and dictionaries never change once they are made, so that
// copies share them; namespaces do change, and belong to the run that made them.
#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace heddle::jinja {

/// What takes memory while it lives: `held` is the sum on this thread.
class Counted {
public:
  explicit Counted(size_t bytes) : bytes(static_cast<int64_t>(bytes)) { held += this->bytes; }
  ~Counted() { held -= bytes; }
  Counted(const Counted &) = delete;
  Counted &operator=(const Counted &) = delete;

  static thread_local int64_t held;

protected:
  void grow(size_t more) {
    bytes += static_cast<int64_t>(more);
    held += static_cast<int64_t>(more);
  }

private:
  int64_t bytes;
};

struct Text;
struct Sequence;
struct Dict;
struct Namespace;
struct Macro;
struct Method;
struct Loop;

/// A function that every template knows.
enum class Function { raiseException, strftimeNow, range, makeNamespace, dict };

class Value;
using Members = std::vector<Value>;
using Entries = std::vector<std::pair<Value, Value>>;

class Value {
public:
  struct Undefined {};
  struct None {};

  Value() = default; ///< undefined
  Value(std::nullptr_t) : held(None()) {}
  Value(std::same_as<bool> auto value) : held(value) {}
  Value(int64_t value) : held(value) {}
  Value(int value) : held(int64_t{value}) {}
  Value(double value) : held(value) {}
  Value(std::string value);
  Value(std::string_view value) : Value(std::string(value)) {}
  Value(const char *value) : Value(std::string(value)) {}
  Value(Namespace *value) : held(value) {}
  Value(Function value) : held(value) {}
  Value(std::shared_ptr<const Macro> value) : held(std::move(value)) {}
  Value(std::shared_ptr<Sequence> value) : held(std::move(value)) {}
  Value(std::shared_ptr<Loop> value) : held(std::move(value)) {}

  static Value list(Members members);
  static Value tuple(Members members);
  /// Of entries with different keys.
  static Value dict(Entries entries);
  static Value method(Value receiver, std::string name);

  bool isUndefined() const { return std::holds_alternative<Undefined>(held); }
  bool isNone() const { return std::holds_alternative<None>(held); }
  bool isBoolean() const { return std::holds_alternative<bool>(held); }
  bool isReal() const { return std::holds_alternative<double>(held); }
  /// True and false are numbers too.
  bool isNumber() const { return isReal() || integer(); }

  /// The value where it is of that kind, else nothing. As in Python, true is the integer 1.
  const std::string *text() const;
  std::optional<int64_t> integer() const;
  std::optional<double> number() const;
  Sequence *sequence() const { return pointer<Sequence>(); }
  const Dict *dict() const { return pointer<const Dict>(); }
  const Macro *macro() const { return pointer<const Macro>(); }
  const Method *method() const { return pointer<const Method>(); }
  std::shared_ptr<Loop> loop() const;
  Namespace *space() const;
  std::optional<Function> function() const;
  bool isCallable() const { return macro() || method() || function() || loop(); }

  /// As Python sees it where a condition is asked.
  bool isTrue() const;

  /// The parts at all depths, and every 64 bytes of text.
  int64_t size() const;
  /// The parts at the first depth, or every 64 bytes of a text.
  int64_t width() const;
  /// How deep lists and dictionaries are nested, and what holds one: a method of it, a loop over
  /// it.
  int height() const;

  /// The same thing in memory, or the same undefined, none, boolean or number of one kind.
  bool isSameThing(const Value &other) const;

  /// In messages: "a number", "a list".
  const char *kind() const;

private:
  template <class T>
  T *pointer() const {
    const auto *found = std::get_if<std::shared_ptr<T>>(&held);
    return found ? found->get() : nullptr;
  }

  std::variant<Undefined, None, bool, int64_t, double, std::shared_ptr<const Text>,
               std::shared_ptr<Sequence>, std::shared_ptr<const Dict>, Namespace *, Function,
               std::shared_ptr<const Macro>, std::shared_ptr<const Method>, std::shared_ptr<Loop>>
      held;
};

struct Text : Counted {
  explicit Text(std::string value)
      : Counted(sizeof(Text) + value.capacity()), value(std::move(value)) {}
  std::string value;
};

/// Everything that has members in an order.
struct Sequence : Counted, std::enable_shared_from_this<Sequence> {
  enum class Kind {
    list,
    tuple,
    range,
    view,      ///< of a dictionary: has a length, but no numbered members
    generator, ///< what some filters make: can be walked over once
  };

  Sequence(Kind kind, Members members);

  Kind kind;
  Members members;
  bool isUsed = false; ///< a generator that was walked over
  int64_t size = 1;
  int height = 1;

  bool hasLength() const { return kind != Kind::generator; }
  bool isIndexed() const { return kind <= Kind::range; }
};

/// Two numbers, of which an integer is not rounded.
std::partial_ordering compareNumbers(const Value &left, const Value &right);

/// Keys are numbers, texts or none; 1, 1.0 and true are one key, as in Python.
struct KeyOrder {
  bool operator()(const Value &left, const Value &right) const;
};

struct Dict : Counted {
  explicit Dict(Entries entries);

  /// The value at a key, or null.
  const Value *find(const Value &key) const;

  Entries entries;
  std::map<Value, size_t, KeyOrder> places;
  int64_t size = 1;
  int height = 1;
};

bool canBeKey(const Value &value);

struct Namespace : Counted {
  Namespace() : Counted(sizeof(Namespace)) {}

  const Value *find(std::string_view name) const;
  void set(const std::string &name, Value value);

private:
  std::map<std::string, Value, std::less<>> variables;
};

/// A method of a value, not yet called.
struct Method : Counted {
  Method(Value receiver, std::string name)
      : Counted(sizeof(Method)), receiver(std::move(receiver)), name(std::move(name)) {}
  Value receiver;
  std::string name;
};

} // namespace heddle::jinja
