// A compiled model as data: the steps to run, what each reads and writes, and how large every
// buffer is. Produced by code generation, run by the executor; no pointer in it but the kernels.
#pragma once

#include "runtime/abi.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::runtime {

/// What a dimension of the table means, and so who fills it in before a call.
enum class DimKind : uint8_t {
  context,   ///< capacity of a cache slot in positions, a multiple of keyBlock
  tokens,    ///< rows of a (tensor, sequences) input
  sequences, ///< sequences of that input
  outputs,   ///< rows whose results the caller asked for
  keys,      ///< rows of the key view: the sum of each sequence's length so far, rounded up
  tensor,    ///< a dynamic dimension of a plain tensor input
};

/// One entry of the table of dimensions. `input` is the index of the function's argument that
/// decides it (for `tokens`, `sequences`, `outputs` and `keys` the `!heddle.sequences` argument);
/// `axis` is used by `tensor` only.
struct Dim {
  DimKind kind;
  uint32_t input = 0;
  uint32_t axis = 0;
};

/// A sum of products of dimensions: `sum_i coefficient_i * prod_j dims[factors_ij]`.
struct SizeTerm {
  int64_t coefficient = 0;
  std::vector<uint32_t> factors;
  bool operator==(const SizeTerm &) const = default;
};
using Size = std::vector<SizeTerm>;

/// The value of `size` for the given dimensions; the largest int64 if that does not fit.
int64_t evaluate(const Size &size, const int64_t *dims);

/// Where an operand of a kernel lives.
enum class Source : uint8_t {
  dims,        ///< the table of dimensions, int64, from entry `index` on
  input,       ///< argument `index` of the function (tensors)
  sequences,   ///< `Sequence` records of argument `index`
  rows,        ///< `Row` records of its token rows
  keyRows,     ///< `Row` records of its key view
  outputRows,  ///< int32 indices of the token rows whose results were asked for
  slot,        ///< arena slot `index`
  param,       ///< bound parameter `index` of the program's table
  constant,    ///< constant `index` of the program's table
  cacheKeys,   ///< keys of layer `index`
  cacheValues, ///< values of layer `index`
  output,      ///< result `index` of the function
};

struct Operand {
  Source source = Source::dims;
  uint32_t index = 0;
  bool operator==(const Operand &) const = default;
};

/// One axis of a step's grid: `ceil(extent / divisor)` tiles.
struct GridAxis {
  Size extent;
  int64_t divisor = 1;
};

enum class Schedule : uint8_t {
  serial,  ///< on the calling thread, whatever its size
  even,    ///< contiguous equal shares: streams of weights
  dynamic, ///< contiguous shares, tile by tile; who is done early helps the others
};

/// A kernel run over a grid of tiles. The steps of a phase run together, all done before the next
/// phase starts.
struct Step {
  Kernel kernel = nullptr;
  std::string symbol; ///< name of the kernel in the code, for profilers
  std::string id;     ///< the graph op it came from, e.g. "layers.0.attention.query"
  std::vector<Operand> operands;
  std::vector<GridAxis> grid;
  Schedule schedule = Schedule::even;
  bool joined = false; ///< belongs to the phase of the step before, which it does not depend on
  Size scratch;        ///< bytes of scratch for each worker
  Size flops;          ///< modelled arithmetic
  Size bytes;          ///< modelled bytes read and written
  Size attention;      ///< bytes of intermediate scores it keeps in the arena, counted apart
};

/// A region of the arena shared by values whose lifetimes do not meet; as large as its largest
/// tenant.
struct Slot {
  std::vector<Size> tenants;
};

/// How a parameter is laid out for the kernels that read it.
enum class Layout : uint8_t {
  plain,  ///< as declared: row-major
  panels, ///< 16 columns after 16 columns, k after k: see packing.h
};

/// The last ones are quantised formats of weights, see quantized/codec.h: their elements have no
/// size of their own.
enum class ElementType : uint8_t { f32, bf16, i32, i1, f64, q8_0, q4_0, q4_k, q6_k, int8 };

/// Bytes of `count` elements; 0 of a quantised format.
int64_t byteSize(ElementType type, int64_t count);

/// A weight as the program wants it: the parameter's name and declared type, and the layout. A
/// product's weight is `[K, N]`, or `[N, K]` when `transposed` (rows are output columns), or
/// `[E, N, K]`, the transposed matrices of E experts.
struct ParamUse {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  Layout layout = Layout::plain;
  bool transposed = false;
  bool operator==(const ParamUse &) const = default;
};

struct Constant {
  ElementType type = ElementType::f32;
  std::vector<int64_t> shape;
  std::vector<uint8_t> bytes;
};

/// What a cache stores an entry of a key or a value as. In int8 every key and every value, one
/// head's at one position, has an f32 scale of its own, the largest magnitude / 127, and the
/// entries are signed bytes; one that is not finite makes the scale, and so all entries read, NaN.
enum class CacheElement : uint8_t { f32, bf16, f16, int8 };

/// As `--kv` takes them.
std::string_view typeName(CacheElement element);
std::span<const std::string_view> cacheElementNames();
std::optional<CacheElement> findCacheElement(std::string_view name);

/// Bytes of an entry, and those of the scale that a key or a value has beside its entries.
int64_t entryBytes(CacheElement element);
int64_t scaleBytes(CacheElement element);

/// What a cache holds: for each layer `heads` x context keys of width `keyWidth` and values of
/// width `valueWidth`.
struct CacheShape {
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t keyWidth = 0;
  int64_t valueWidth = 0;
  CacheElement element = CacheElement::f32;
};

/// One argument of the function.
struct Input {
  enum class Kind : uint8_t { tensor, sequences, cache } kind = Kind::tensor;
  ElementType type = ElementType::f32;
  std::vector<Size> shape; ///< tensors only
};

struct Output {
  ElementType type = ElementType::f32;
  std::vector<Size> shape;
  /// Of a program that is run when the model is loaded: the parameter that it is the value of.
  std::string param = {};
};

struct Program {
  std::vector<Dim> dims;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Slot> slots;
  std::vector<ParamUse> params;
  std::vector<Constant> constants;
  std::vector<Step> steps;
  CacheShape cache;
  bool hasCache = false;
  /// Of the decode program: it is taken for calls of at most this many tokens.
  int64_t maxTokens = 0;
};

/// Whether `operand` is in range: the program has such an argument, slot, layer ...
bool holds(const Program &program, const Operand &operand);

/// What is wrong with a program: an index out of range, a tile of no size. Empty if nothing is.
/// Kernels may be missing.
std::string findFault(const Program &program);

} // namespace heddle::runtime
