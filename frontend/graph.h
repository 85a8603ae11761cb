// The builder: describes a model as a graph of operations on tensors whose rows are tokens. The
// operations themselves are in operations.h.
//
// A wrong call never stops the program: it is noted with the caller's own file and line, its result
// is a value on which every further operation is silent, and `compile` (or `Graph::check`) reports
// all of them together.
#pragma once

#include "runtime/program.h"
#include "runtime/result.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

namespace detail {
class GraphState;
struct Access;

/// What a handle refers to: a value of a graph; no value where a wrong call made it.
struct Handle {
  GraphState *graph = nullptr;
  const void *value = nullptr;
};
} // namespace detail

/// The place of a call, taken by default from the call itself.
using Where = std::source_location;

using runtime::CacheElement;
using runtime::ElementType;

/// Stands in a shape for a size that every call of the model decides, such as the number of tokens.
inline constexpr int64_t anySize = -1;

/// A tensor of the graph, by handle: cheap to copy, valid as long as its graph. Activations are
/// f32; their rows are tokens, `[tokens, width]`.
class Value {
public:
  Value() = default;

  /// Whether it was ever set (to a good or a faulty value).
  explicit operator bool() const { return handle.graph != nullptr; }

  /// The sizes of its dimensions, anySize where calls decide; none for a faulty value.
  std::vector<int64_t> shape() const;

  /// The size of the last dimension; 0 for a faulty value.
  int64_t width() const;

  /// Names the operation that made it, within the scope open now: `scores` in scope
  /// `layers.0.attention` gives the id `layers.0.attention.scores`. Dumps and profiles show ids.
  Value named(std::string_view role) const;

private:
  friend struct detail::Access;
  detail::Handle handle;
};

/// Says of every row of a batch which sequence it belongs to, and at which position it stands.
class Rows {
public:
  Rows() = default;
  explicit operator bool() const { return handle.graph != nullptr; }

private:
  friend struct detail::Access;
  detail::Handle handle;
};

/// All keys and values of the sequences of a call, and what their rows are.
struct CachedKeys {
  Value keys;   ///< `[heads, keys, keyWidth]`
  Value values; ///< `[heads, keys, valueWidth]`
  Rows rows;    ///< of the keys
};

/// The keys and values of the positions seen so far. A handle to the one cache of a graph; in the
/// graph it is a value that every append replaces, and `append` keeps track of that.
class Cache {
public:
  Cache() = default;
  explicit operator bool() const { return handle.graph != nullptr; }

  /// Appends `keys` `[heads, tokens, keyWidth]` and `values` `[heads, tokens, valueWidth]`, the
  /// rows `rows`, to `layer`, and gives all that the layer holds of those sequences.
  CachedKeys append(int64_t layer, Value keys, Value values, Rows rows,
                    Where where = Where::current());

private:
  friend struct detail::Access;
  detail::Handle handle;
};

/// A tensor or a number as an operand of + - * / and of elementwise functions, with the place where
/// it was used. Numbers become constants of the other operand's element type.
class Operand {
public:
  Operand(Value value, Where where = Where::current()) : value(value), where(where) {}
  Operand(double number, Where where = Where::current())
      : number(number), isNumber(true), where(where) {}

private:
  friend struct detail::Access;
  Value value;
  double number = 0;
  bool isNumber = false;
  Where where;
};

/// Elementwise, in f32 or i32. Shapes broadcast from the right: sizes are equal, or one of them is
/// 1 or missing.
Value operator+(Operand left, Operand right);
Value operator-(Operand left, Operand right);
Value operator*(Operand left, Operand right);
Value operator/(Operand left, Operand right);
Value operator-(Operand value);

/// The tokens of a call: the ids of all its sequences, one after the other, and what each row is.
struct Tokens {
  Value ids; ///< `[tokens]`, i32
  Rows rows;
};

/// Like Tokens, with a vector instead of an id.
struct TokenVectors {
  Value vectors; ///< `[tokens, width]`
  Rows rows;
};

/// What a cache holds.
struct CacheOptions {
  int64_t layers = 1;
  int64_t heads = 1;      ///< key/value heads
  int64_t keyWidth = 1;   ///< of one head
  int64_t valueWidth = 0; ///< of one head; 0: as keyWidth
};

/// A named part of a model, open as long as this object lives: its name stands before those of the
/// weights made with it and of the operations made while it is the innermost open one.
class Scope {
public:
  Scope(Scope &&other) noexcept;
  Scope &operator=(Scope &&) = delete;
  ~Scope();

  /// The parameter `<scope>.<name>`, `[out, in]` for products, as checkpoints store them. The same
  /// name with the same shape is the same weight; with another shape it is an error.
  Value weight(std::string_view name, std::vector<int64_t> shape,
               Where where = Where::current()) const;

  /// Opens the scope `<scope>.<name>`.
  Scope scope(std::string_view name) const;
  /// Opens the scope `<scope>.<name>.<index>`.
  Scope scope(std::string_view name, int64_t index) const;

  /// Its whole name, "layers.0".
  const std::string &name() const;

private:
  friend struct detail::Access;
  Scope(detail::GraphState *graph, std::string name);

  detail::GraphState *graph;
  std::shared_ptr<const std::string> prefix;
};

/// Opens the scope `name` within the innermost open one of the graph of `value`; for functions that
/// compose operations and are given no scope.
Scope scopeWithin(const Value &value, std::string_view name);

/// A parameter of a graph.
struct WeightShape {
  std::string name;
  std::vector<int64_t> shape;
};

struct GraphOptions {
  /// Element type of the weights of products, of embedding tables and of the cache: f32, bf16 or
  /// a quantised format (the cache is bf16 then).
  /// All other weights (norms, biases) are f32. `CompileOptions::dtype` can change it later.
  ElementType weights = ElementType::f32;
  /// The longest sequence the model is made for, in positions; sessions take it by default. 0: not
  /// said.
  int64_t context = 0;
};

/// A model under construction. Movable; handles stay valid. Not for use by two threads at once.
class Graph {
public:
  explicit Graph(std::string_view name = "model", GraphOptions options = {},
                 Where where = Where::current());
  Graph(Graph &&) noexcept;
  Graph &operator=(Graph &&) noexcept;
  ~Graph();

  const std::string &name() const;

  /// A batch of token ids. A model may have several, told apart by `name`: "source", "target".
  Tokens tokens(std::string_view name = "", Where where = Where::current());

  /// A batch of tokens given as vectors of `width` entries.
  TokenVectors tokenVectors(int64_t width, Where where = Where::current());

  /// A tensor that is no batch of tokens.
  Value input(std::vector<int64_t> shape, ElementType type = ElementType::f32,
              Where where = Where::current());

  /// The cache of the model; at most one.
  Cache cache(CacheOptions options, Where where = Where::current());

  /// A weight outside all scopes; see Scope::weight.
  Value weight(std::string_view name, std::vector<int64_t> shape, Where where = Where::current());

  /// The element type of the weight of this whole name, where it is one of those that
  /// `GraphOptions::weights` speaks of: instead of what that says.
  void setWeightType(std::string_view name, ElementType type);

  /// Opens a scope by its whole name.
  Scope scope(std::string_view name);
  /// Opens the scope `<name>.<index>`.
  Scope scope(std::string_view name, int64_t index);

  /// A number, of shape `[]`.
  Value constant(double value, Where where = Where::current());
  /// A small tensor that is part of the model's text, row-major.
  Value constant(std::vector<int64_t> shape, const std::vector<float> &values,
                 Where where = Where::current());
  Value constant(std::vector<int64_t> shape, const std::vector<int32_t> &values,
                 Where where = Where::current());

  /// Makes `value` the next result of the model.
  void output(Value value, Where where = Where::current());

  /// Notes an error of a model's own, such as options that do not fit.
  void error(const std::string &message, Where where = Where::current());

  /// Every error so far, "file:line: what was wrong", in the order of the calls.
  const std::vector<std::string> &errors() const;

  /// The parameters, in the order in which they were first asked for.
  std::vector<WeightShape> weights() const;

  /// All errors together, and those that only a finished graph has (no output).
  Status check() const;

  /// The graph as text of the dialect, without data of weights. Errors: as `check`.
  Result<std::string> text() const;

private:
  friend struct detail::Access;
  std::unique_ptr<detail::GraphState> state;
};

} // namespace heddle
