// What graphs are made of: every operation of the dialect as a function, and the compositions of
// them that most models share. All take the place of the call; errors name it.
#pragma once

#include "frontend/graph.h"

#include <span>

namespace heddle {

//===-- Elementwise ---------------------------------------------------------------------------===//

/// Elementwise functions of one tensor. f32 except `logicalNot`.
enum class Unary {
  neg,
  abs,
  exp,
  log,
  sqrt,
  rsqrt,
  sin,
  cos,
  tanh,
  sigmoid,
  relu,
  silu,
  geluErf,  ///< x * Phi(x), exactly (https://arxiv.org/abs/1606.08415)
  geluTanh, ///< its approximation by tanh, section 2 there
  erf,
  square,
  logicalNot,
};

/// Elementwise functions of two tensors. Arithmetic takes f32 or i32; comparisons give i1, which
/// `logicalAnd` and `logicalOr` take. NaN wins in `max` and `min`.
enum class Binary { add, sub, mul, div, max, min, equal, less, lessEqual, logicalAnd, logicalOr };

Value unary(Unary function, Value x, Where where = Where::current());
Value binary(Binary function, Operand left, Operand right);

inline Value exp(Value x, Where where = Where::current()) { return unary(Unary::exp, x, where); }
inline Value sqrt(Value x, Where where = Where::current()) { return unary(Unary::sqrt, x, where); }
inline Value sin(Value x, Where where = Where::current()) { return unary(Unary::sin, x, where); }
inline Value cos(Value x, Where where = Where::current()) { return unary(Unary::cos, x, where); }
inline Value tanh(Value x, Where where = Where::current()) { return unary(Unary::tanh, x, where); }
inline Value relu(Value x, Where where = Where::current()) { return unary(Unary::relu, x, where); }
/// x * sigmoid(x), also called swish.
inline Value silu(Value x, Where where = Where::current()) { return unary(Unary::silu, x, where); }
inline Value sigmoid(Value x, Where where = Where::current()) {
  return unary(Unary::sigmoid, x, where);
}
inline Value geluErf(Value x, Where where = Where::current()) {
  return unary(Unary::geluErf, x, where);
}
inline Value geluTanh(Value x, Where where = Where::current()) {
  return unary(Unary::geluTanh, x, where);
}

/// limit * tanh(x / limit): nearly x where that is small, within (-limit, limit) everywhere.
Value softcap(Value x, double limit, Where where = Where::current());

/// `yes` where `condition` (i1) holds, else `no`, on which the other one has no influence.
Value select(Value condition, Operand yes, Operand no, Where where = Where::current());

/// The same values in another element type: i32 or i1 to f32, f32 to bf16 and back.
Value cast(Value x, ElementType type, Where where = Where::current());

//===-- Products ------------------------------------------------------------------------------===//

/// How the right side of a product lies in memory.
enum class Orientation {
  outIn, ///< `[N, K]`, a row for each output, as most checkpoints store weights
  inOut, ///< `[K, N]`
};

/// `[.., M, K] x [.., K, N] -> [.., M, N]`, accumulated in f32. Leading dimensions are equal, or
/// the right side has none. With a bf16 weight the left side is rounded to bf16 first.
Value matmul(Value left, Value right, Orientation orientation = Orientation::inOut,
             Where where = Where::current());

struct LinearOptions {
  Value bias = {}; ///< `[out]`, or none
  Orientation orientation = Orientation::outIn;
};

/// `[tokens, in] x weight -> [tokens, out]`, plus a bias. Takes its ids from the weights' names.
Value linear(Value x, Value weight, LinearOptions options = {}, Where where = Where::current());

/// `down(activation(gate(x)) * up(x))` (https://arxiv.org/abs/2002.05202); SwiGLU with `silu`.
/// `x` is `[tokens, d]`, `gate` and `up` are `[hidden, d]`, `down` is `[d, hidden]`.
Value gatedMlp(Value x, Value gate, Value up, Value down, Unary activation = Unary::silu,
               Where where = Where::current());

//===-- Mixtures of experts -------------------------------------------------------------------===//

/// The largest entries of every row, and where they stand.
struct TopK {
  Value values; ///< `[.., count]`, descending
  Value ids;    ///< their places in the row, i32
};

/// The `count` largest entries of every row of `x` `[.., n]`; of equal ones the first comes first,
/// NaN before all numbers.
TopK topK(Value x, int64_t count, Where where = Where::current());

/// Every row times the matrices that it chose: `x` is `[tokens, in]`, or `[tokens, chosen, in]`,
/// `weight` `[experts, out, in]`, `ids` `[tokens, chosen]`; gives `[tokens, chosen, out]`. The
/// matrix of an expert is read once for all rows. Takes its id from the weight's name.
Value expertLinear(Value x, Value weight, Value ids, Where where = Where::current());

//===-- Rows ----------------------------------------------------------------------------------===//

/// The position of every row in its own sequence: `[tokens]`, i32.
Value positions(Rows rows, Where where = Where::current());

/// Rows of the table `[words, width]` by `ids` `[tokens]`: `[tokens, width]`.
Value embed(Value table, Value ids, Where where = Where::current());

/// The rows of `x` `[tokens, width]` whose results the caller of the model asked for: the last one
/// of every sequence, or all.
Value selectRows(Value x, Rows rows, Where where = Where::current());

//===-- Norms and reductions ------------------------------------------------------------------===//

/// x / sqrt(mean(x^2) + epsilon) * weight along the last dimension
/// (https://arxiv.org/abs/1910.07467). `weight` is `[width]`, or none.
Value rmsNorm(Value x, Value weight = {}, double epsilon = 1e-5, Where where = Where::current());

/// (x - mean) / sqrt(variance + epsilon) * weight + bias along the last dimension
/// (https://arxiv.org/abs/1607.06450). `weight` and `bias` are `[width]`, or none.
Value layerNorm(Value x, Value weight = {}, Value bias = {}, double epsilon = 1e-5,
                Where where = Where::current());

/// Folds dimension `axis` (-1: the last) into size 1.
Value reduceSum(Value x, int64_t axis = -1, Where where = Where::current());
Value reduceMean(Value x, int64_t axis = -1, Where where = Where::current());
Value reduceMax(Value x, int64_t axis = -1, Where where = Where::current());
Value reduceMin(Value x, int64_t axis = -1, Where where = Where::current());

/// exp(x - max) / sum along `axis` (-1: the last); 0 where everything is masked.
Value softmax(Value x, int64_t axis = -1, Where where = Where::current());
/// The softmax of scores `[.., heads, queries, keys]` with a sink: `sink` `[heads]` takes part in
/// maximum and sum like the score of one more key, whose value is nothing
/// (https://arxiv.org/abs/2309.17453).
Value softmaxWithSink(Value scores, Value sink, Where where = Where::current());

//===-- Heads and attention -------------------------------------------------------------------===//

/// `[tokens, heads * d] -> [heads, tokens, d]`.
Value splitHeads(Value x, int64_t heads, Where where = Where::current());
/// `[heads, tokens, d] -> [tokens, heads * d]`.
Value mergeHeads(Value x, Where where = Where::current());
/// Gives each of `heads` query heads its key/value head: `[kvHeads, keys, d] -> [heads, keys, d]`.
/// Head h uses head h / (heads / kvHeads) (https://arxiv.org/abs/2305.13245).
Value gatherHeads(Value x, int64_t heads, Where where = Where::current());

/// Which two entries of a head turn together.
enum class Pairing {
  interleaved, ///< 2i and 2i + 1
  halfSplit,   ///< i and i + dims / 2
};

/// Rotary positions (https://arxiv.org/abs/2104.09864): pair i turns by position * base^(-2i/dims).
struct Rotary {
  Pairing pairing = Pairing::interleaved;
  double base = 10000;
  int64_t dims = 0;                     ///< entries of a head that turn; 0: all
  std::vector<double> frequencies = {}; ///< one for each pair, instead of `base`
  double magnitude = 1;                 ///< factor on the turned entries
};

/// Turns the rows of `x` `[heads, tokens, d]` by their `positions` `[tokens]`, i32.
Value rotate(Value x, Value positions, const Rotary &rotary = {}, Where where = Where::current());

/// Which keys a query sees: those of its own sequence that meet all of these.
struct MaskOptions {
  Rows queries = {};   ///< of the scores' rows; none: row i is position i
  Rows keys = {};      ///< of the scores' columns; none: column i is position i
  bool causal = false; ///< key position <= query position
  int64_t window = 0;  ///< only the last `window` positions, the query's own included; 0: all
  int64_t prefix = 0;  ///< keys below this position are seen even so; needs `causal`
  int64_t chunk = 0;   ///< only keys of the query's own `chunk` positions, counted from 0; 0: all
  /// Numbers of documents packed into one sequence, i32 `[queries]` and `[keys]`: only keys of the
  /// query's own. Both or neither.
  Value querySegments = {};
  Value keySegments = {};
  Value visible = {}; ///< i1, broadcast to the scores: seen where it holds
};

/// Sets the scores `[.., queries, keys]` that may not be seen to -inf.
Value mask(Value scores, const MaskOptions &options, Where where = Where::current());

struct AttentionOptions {
  Value query;          ///< `[tokens, heads * d]`
  Value key;            ///< `[keys, kvHeads * d]`
  Value value;          ///< `[keys, kvHeads * dv]`
  int64_t heads = 1;    ///< query heads
  int64_t kvHeads = 0;  ///< key/value heads, a divisor of `heads`; 0: as `heads`
  Rows rows = {};       ///< of the queries; of the keys too unless `keyRows` says otherwise
  Rows keyRows = {};    ///< of the keys, where they belong to another batch (cross-attention)
  Cache cache = {};     ///< where keys and values are kept and taken from, or none
  int64_t layer = 0;    ///< of the cache
  Value queryNorm = {}; ///< `[d]`: RMSNorm of every head before it turns
  Value keyNorm = {};
  double normEpsilon = 1e-5;
  std::optional<Rotary> rotary = std::nullopt; ///< turns queries and keys
  bool causal = true;
  int64_t window = 0;                         ///< see MaskOptions
  std::optional<double> scale = std::nullopt; ///< on the scores; 1 / sqrt(d) by default
  double softcap = 0;                         ///< scores become cap * tanh(score / cap); 0: none
  std::string_view name = "attention";        ///< the scope of its operations
};

/// softmax(mask(q k^T * scale)) v for every head (https://arxiv.org/abs/1706.03762), written in the
/// operations above: `[tokens, heads * dv]`.
Value attention(const AttentionOptions &options, Where where = Where::current());

//===-- Shapes --------------------------------------------------------------------------------===//

/// Dimension i of the result is dimension `permutation[i]` of `x`.
Value transpose(Value x, const std::vector<int64_t> &permutation, Where where = Where::current());
/// The same elements, row-major, in another shape; one size may be anySize: what remains.
Value reshape(Value x, const std::vector<int64_t> &shape, Where where = Where::current());
/// Repeats dimensions of size 1 (or missing ones, from the left); anySize keeps a dimension.
Value expand(Value x, const std::vector<int64_t> &shape, Where where = Where::current());
/// One after the other along `axis` (-1: the last).
Value concat(const std::vector<Value> &parts, int64_t axis = -1, Where where = Where::current());
/// Entries `start` to `start + size` of the static dimension `axis` (-1: the last).
Value slice(Value x, int64_t axis, int64_t start, int64_t size, Where where = Where::current());

} // namespace heddle
