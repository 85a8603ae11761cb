#include "tests/unit/passes/random_graph.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <random>

namespace heddle::test {

namespace {

constexpr int64_t open = -1;
constexpr int64_t width = 8;

struct Value {
  std::string name;
  Shape shape;
};

std::string typeOf(const Shape &shape, const char *element = "f32") {
  std::string text = "tensor<";
  for (int64_t size : shape)
    text += size == open ? "?x" : std::to_string(size) + "x";
  return text + element + ">";
}

/// The shape two values broadcast to; false where they do not.
bool broadcast(const Shape &a, const Shape &b, Shape &out) {
  size_t rank = std::max(a.size(), b.size());
  out.assign(rank, 1);
  for (size_t i = 0; i < rank; ++i) {
    int64_t x = i < rank - a.size() ? 1 : a[i - (rank - a.size())];
    int64_t y = i < rank - b.size() ? 1 : b[i - (rank - b.size())];
    if (x != y && x != 1 && y != 1)
      return false;
    out[i] = x == 1 ? y : x;
  }
  return true;
}

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}

  RandomGraph generate() {
    values = {{"%x", {open, width}}, {"%y", {open, width}}};
    addConstants();
    int statements = 4 + pick(14);
    for (int i = 0; i < statements; ++i)
      addStatement();
    std::vector<std::string> names, types;
    choose(names, types);
    RandomGraph graph;
    names.push_back(cache);
    types.push_back(cacheType);
    graph.model.text = forward("%x: tensor<?x8xf32>, %rows: !heddle.sequences, %y: "
                               "tensor<?x8xf32>, %c: " +
                                   std::string(cacheType),
                               fmt::format("{}", fmt::join(types, ", ")), body,
                               fmt::format("{}", fmt::join(names, ", ")), globals);
    graph.model.params = params;
    graph.call = arguments();
    return graph;
  }

private:
  int pick(int count) { return int(random() % unsigned(count)); }
  bool chance(int percent) { return pick(100) < percent; }
  template <class T>
  const T &oneOf(const std::vector<T> &list) {
    return list[size_t(pick(int(list.size())))];
  }

  Value emit(const std::string &text, const std::string &operandTypes, const Shape &shape,
             const char *element = "f32") {
    std::string name = fmt::format("%v{}", count++);
    body += fmt::format("  {} = heddle.{} : ({}) -> {}\n", name, text, operandTypes,
                        typeOf(shape, element));
    return {name, shape};
  }

  Value constant(const std::string &dense, const Shape &shape, const char *element = "f32") {
    std::string name = fmt::format("%v{}", count++);
    body +=
        fmt::format("  {} = heddle.constant dense<{}> : {}\n", name, dense, typeOf(shape, element));
    return {name, shape};
  }

  void addConstants() {
    values.push_back(constant("0.5", {}));
    values.push_back(constant("[0.25, -1.0, 0.5, 2.0, 0.0, 1.0, -0.5, 0.125]", {width}));
    values.push_back(constant("1.5", {1, width}));
    std::string name = fmt::format("%v{}", count++);
    params["scale"] = numbers({width});
    globals += "heddle.param @scale : tensor<8xf32>\n";
    body += fmt::format("  {} = heddle.weight @scale : tensor<8xf32>\n", name);
    values.push_back({name, {width}});
  }

  Tensor64 numbers(Shape shape) {
    Tensor64 tensor(std::move(shape));
    // Exact in bf16, so that it does not matter how a weight is stored.
    for (double &value : tensor.data)
      value = double(pick(65) - 32) / 64;
    return tensor;
  }

  /// A new weight of [width, n] or its transpose, with its type.
  std::pair<std::string, std::string> weight(int64_t n, bool transposed, const char *element) {
    std::string id = fmt::format("w{}", params.size());
    Shape shape = transposed ? Shape{n, width} : Shape{width, n};
    std::string type = typeOf(shape, element);
    params[id] = numbers(shape);
    globals += fmt::format("heddle.param @{} : {}\n", id, type);
    std::string name = fmt::format("%v{}", count++);
    body += fmt::format("  {} = heddle.weight @{} : {}\n", name, id, type);
    return {name, type};
  }

  Value matmul(const Value &x, int64_t n, bool transposed, const char *element) {
    auto [name, type] = weight(n, transposed, element);
    if (element == std::string_view("f32") && chance(15)) {
      // One that is not read as it is.
      Shape shape = transposed ? Shape{n, width} : Shape{width, n};
      name = binary(chance(50) ? "mul" : "sub", {name, shape}, constant("0.25", {})).name;
    }
    return emit(fmt::format("matmul {}, {}{}", x.name, name, transposed ? " {transpose_rhs}" : ""),
                typeOf(x.shape) + ", " + type, {open, n});
  }

  Value matmul(const Value &x, int64_t n = width) {
    return matmul(x, n, chance(50), chance(30) ? "bf16" : "f32");
  }

  Value unary(const Value &x) {
    static const std::vector<std::string> kinds = {"neg",  "abs",  "tanh", "sigmoid", "relu",
                                                   "silu", "tanh", "erf",  "sin"};
    return emit(fmt::format("unary {} {}", oneOf(kinds), x.name), typeOf(x.shape), x.shape);
  }

  Value binary(const std::string &kind, const Value &x, const Value &y,
               const char *element = "f32") {
    Shape shape;
    broadcast(x.shape, y.shape, shape);
    return emit(fmt::format("binary {} {}, {}", kind, x.name, y.name),
                typeOf(x.shape) + ", " + typeOf(y.shape), shape, element);
  }

  Value anyBinary(const Value &x) {
    static const std::vector<std::string> kinds = {"add", "sub", "mul", "max", "min", "add"};
    Value y = compatible(x);
    return chance(50) ? binary(oneOf(kinds), x, y) : binary(oneOf(kinds), y, x);
  }

  /// A value that broadcasts with `x`, recent ones more often.
  Value compatible(const Value &x) {
    Shape shape;
    for (int attempt = 0; attempt < 20; ++attempt) {
      const Value &y = chance(50) ? values[values.size() - 1 - size_t(pick(4))] : oneOf(values);
      if (broadcast(x.shape, y.shape, shape) && shape.size() < 3)
        return y;
    }
    return x;
  }

  Value rowsOf(size_t columns) {
    std::vector<Value> found;
    for (const Value &value : values)
      if (value.shape == Shape{open, int64_t(columns)})
        found.push_back(value);
    return chance(60) ? found.back() : oneOf(found);
  }

  void addStatement() {
    int kind = pick(100);
    const Value x = chance(70) ? values.back() : oneOf(values);
    if (kind < 25)
      values.push_back(unary(x));
    else if (kind < 50)
      values.push_back(anyBinary(x));
    else if (kind < 62)
      values.push_back(matmul(rowsOf(width)));
    else if (kind < 70)
      values.push_back(choice(x));
    else if (kind < 76)
      values.push_back(barrier(rowsOf(width)));
    else if (kind < 81)
      values.push_back(rounded(x));
    else if (kind < 84)
      values.push_back(positions());
    else if (kind < 89)
      values.push_back(gated(rowsOf(width)));
    else if (kind < 95)
      values.push_back(attention(rowsOf(width)));
    else
      values.push_back(cachedAttention(rowsOf(width)));
  }

  Value choice(const Value &x) {
    Value y = compatible(x), condition = x;
    Shape shape;
    broadcast(x.shape, y.shape, shape);
    std::string types = typeOf(x.shape) + ", " + typeOf(y.shape);
    condition = binary(chance(50) ? "less" : "less_equal", x, y, "i1");
    return emit(fmt::format("select {}, {}, {}", condition.name, x.name, y.name),
                typeOf(shape, "i1") + ", " + types, shape);
  }

  Value barrier(const Value &x) {
    if (chance(50))
      return emit(fmt::format("norm rms {} {{epsilon = 1.0e-05 : f64}}", x.name), typeOf(x.shape),
                  x.shape);
    return emit(fmt::format("reduce mean {} {{axis = 1 : i64}}", x.name), typeOf(x.shape),
                {open, 1});
  }

  Value rounded(const Value &x) {
    Value low = emit(fmt::format("cast {} to bf16", x.name), typeOf(x.shape), x.shape, "bf16");
    return emit(fmt::format("cast {} to f32", low.name), typeOf(x.shape, "bf16"), x.shape);
  }

  Value positions() {
    Value p = emit("positions %rows", "!heddle.sequences", {open}, "i32");
    Value column = emit(fmt::format("reshape {} {{shape = array<i64: -1, 1>}}", p.name),
                        typeOf(p.shape, "i32"), {open, 1}, "i32");
    return emit(fmt::format("cast {} to f32", column.name), typeOf(column.shape, "i32"),
                column.shape);
  }

  Value gated(const Value &x) {
    bool transposed = chance(50);
    const char *element = chance(30) ? "bf16" : "f32";
    Value gate = matmul(x, width, transposed, element);
    Value up = matmul(x, width, transposed, chance(85) ? element : "f32");
    if (chance(15))
      values.push_back(up);
    if (chance(30))
      up = anyBinary(up);
    Value act = chance(85) ? unary(gate) : gate;
    if (act.shape != up.shape)
      return up;
    return binary(chance(80) ? "mul" : "add", act, up);
  }

  //===-- Attention
  //-----------------------------------------------------------------------------===//

  Value heads(const Value &x, int64_t count, int64_t columns) {
    return emit(fmt::format("split_heads {} {{heads = {} : i64}}", x.name, count), typeOf(x.shape),
                {count, open, columns / count});
  }

  Value reshaped(const Value &x, const Shape &shape) {
    return emit(
        fmt::format("reshape {} {{shape = array<i64: {}>}}", x.name, fmt::join(shape, ", ")),
        typeOf(x.shape), shape);
  }

  Value repeated(const Value &x, int64_t count) {
    if (x.shape[0] == count && chance(80))
      return x;
    Shape shape = {count, open, x.shape[2]},
          groups = {x.shape[0], count / x.shape[0], open, x.shape[2]};
    if (chance(70))
      return emit(fmt::format("gather_heads {} {{heads = {} : i64}}", x.name, count),
                  typeOf(x.shape), shape);
    Value single = reshaped(x, {x.shape[0], 1, open, x.shape[2]});
    Value few = emit(
        fmt::format("expand {} {{shape = array<i64: {}>}}", single.name, fmt::join(groups, ", ")),
        typeOf(single.shape), groups);
    return reshaped(few, shape);
  }

  Value scoresOf(const Value &q, const Value &k) {
    Shape shape = {q.shape[0], open, open};
    if (chance(70))
      return emit(fmt::format("matmul {}, {} {{transpose_rhs}}", q.name, k.name),
                  typeOf(q.shape) + ", " + typeOf(k.shape), shape);
    Value turned = emit(fmt::format("transpose {} {{permutation = array<i64: 0, 2, 1>}}", k.name),
                        typeOf(k.shape), {k.shape[0], k.shape[2], open});
    return emit(fmt::format("matmul {}, {}", q.name, turned.name),
                typeOf(q.shape) + ", " + typeOf(turned.shape), shape);
  }

  Value mask(const Value &s) {
    std::string attributes = chance(60) ? "causal" : "";
    if (!attributes.empty() && chance(50))
      attributes += fmt::format(", prefix = {} : i64", pick(5));
    if (chance(40))
      attributes +=
          (attributes.empty() ? "" : ", ") + fmt::format("window = {} : i64", 1 + pick(5));
    std::string operands, types = typeOf(s.shape);
    if (chance(90) ? describeRows : chance(50)) {
      operands = " queries(%rows) keys(%rows)";
      types += ", !heddle.sequences, !heddle.sequences";
    }
    if (chance(40)) {
      Value tensor = maskTensor();
      operands += fmt::format(" mask({})", tensor.name);
      types += ", " + typeOf(tensor.shape, "i1");
    }
    return emit(fmt::format("mask {}{} {{{}}}", s.name, operands, attributes), types, s.shape);
  }

  Value maskTensor() {
    Value column = positions();
    if (distance.name.empty())
      makeDistance(column);
    return binary(chance(50) ? "less" : "less_equal", distance,
                  constant(chance(50) ? "0.5" : "1.5", {}), "i1");
  }

  /// Positions of keys less those of queries: [T, T].
  void makeDistance(const Value &column) {
    Value row = emit(fmt::format("reshape {} {{shape = array<i64: 1, -1>}}", column.name),
                     typeOf(column.shape), {1, open});
    distance = emit(fmt::format("binary sub {}, {}", row.name, column.name),
                    typeOf(row.shape) + ", " + typeOf(column.shape), {open, open});
  }

  Value chainStep(const Value &s) {
    switch (pick(7)) {
    case 0:
      return unary(s);
    case 1:
      return binary("mul", s, constant("0.375", {}));
    case 2:
      return binary("add", s, constant("-0.75", {1, 1}));
    case 3:
      return binary("mul", s, constant(chance(50) ? "-2.0" : "2.0", {}));
    case 4:
      if (distance.name.empty())
        makeDistance(positions());
      return binary("add", s,
                    binary("mul", distance,
                           constant(s.shape[0] == 2 ? "[[[0.5]], [[0.25]]]"
                                                    : "[[[0.5]], [[0.25]], [[0.125]], [[1.0]]]",
                                    {s.shape[0], 1, 1})));
    case 5:
      return binary("mul", s, positions());
    default:
      return mask(s);
    }
  }

  /// `a` and `b` turned, mostly alike.
  void rotate(Value &a, Value &b) {
    Value p = emit("positions %rows", "!heddle.sequences", {open}, "i32");
    std::string pairing = chance(50) ? "interleaved" : "half_split", base = "1.0e+04";
    for (Value *x : {&a, &b}) {
      *x = emit(fmt::format("rotate {} {}, {} {{base = {} : f64}}", pairing, x->name, p.name, base),
                typeOf(x->shape) + ", tensor<?xi32>", x->shape);
      if (chance(10))
        base = "1.0e+02";
    }
  }

  /// Queries, keys and values of one input, the latter in the cache.
  Value cachedAttention(const Value &x) {
    bool transposed = chance(50), biased = chance(40);
    const char *element = chance(30) ? "bf16" : "f32";
    auto projected = [&](int64_t count) {
      Value y = matmul(chance(97) ? x : values.front(), 4 * count, transposed,
                       chance(95) ? element : "f32");
      if (biased && chance(95))
        y = binary("add", y, constant(chance(50) ? "0.25" : "-1.5", {4 * count}));
      if (count == 2 && chance(5))
        values.push_back(y);
      return heads(y, count, 4 * count);
    };
    Value q = projected(2), k = projected(1), v = projected(1);
    if (chance(70))
      rotate(q, k);
    std::string names[4];
    for (std::string &name : names)
      name = fmt::format("%v{}", count++);
    body += fmt::format("  {} = heddle.cache_append {}, {}, {}, %rows {{layer = 0 : i64}} : ({}, "
                        "{}, {}, !heddle.sequences) -> ({}, {}, {}, !heddle.sequences)\n",
                        fmt::join(names, ", "), cache, k.name, v.name, cacheType, typeOf(k.shape),
                        typeOf(v.shape), cacheType, typeOf(k.shape), typeOf(v.shape));
    cache = names[0];
    Value s = scoresOf(q, repeated({names[1], k.shape}, 2));
    s = emit(fmt::format("mask {} queries(%rows) keys({}) {{causal}}", s.name, names[3]),
             typeOf(s.shape) + ", !heddle.sequences, !heddle.sequences", s.shape);
    Value p = emit("softmax " + s.name, typeOf(s.shape), s.shape);
    Value all = repeated({names[2], v.shape}, 2);
    Value o = emit(fmt::format("matmul {}, {}", p.name, all.name),
                   typeOf(p.shape) + ", " + typeOf(all.shape), {2, open, 4});
    return emit("merge_heads " + o.name, typeOf(o.shape), {open, width});
  }

  Value attention(const Value &x) {
    int64_t count = chance(50) ? 2 : 4, few = chance(50) ? count : count / 2;
    int64_t columns = 2 * count;
    Value q = heads(matmul(x, columns), count, columns);
    Value k = repeated(heads(matmul(x, 2 * few), few, 2 * few), count);
    Value v = repeated(heads(matmul(x, 4 * few), few, 4 * few), count);
    if (chance(40))
      rotate(q, k);
    Value s = scoresOf(q, k);
    describeRows = chance(50);
    for (int steps = pick(5); steps > 0; --steps)
      s = chainStep(s);
    for (int masks = pick(4); masks > 0; --masks)
      s = mask(s);
    Value p = emit("softmax " + s.name, typeOf(s.shape), s.shape);
    if (chance(5))
      p = mask(p), p = unary(p);
    Value o = emit(fmt::format("matmul {}, {}", p.name, v.name),
                   typeOf(p.shape) + ", " + typeOf(v.shape), {count, open, 4});
    Value rows = emit("merge_heads " + o.name, typeOf(o.shape), {open, 4 * count});
    if (chance(8))
      extraResult = p;
    return 4 * count == width ? rows : sliced(rows);
  }

  Value sliced(const Value &x) {
    return emit(fmt::format("slice {} {{axis = 1 : i64, start = 0 : i64, size = 8 : i64}}", x.name),
                typeOf(x.shape), {open, width});
  }

  //===-- Results and arguments
  //-----------------------------------------------------------------===//

  /// Whether an operation reads `value`.
  bool isRead(const Value &value) const {
    for (size_t at = body.find(value.name); at != std::string::npos;
         at = body.find(value.name, at + 1)) {
      char next = body[at + value.name.size()];
      bool defines = body.compare(at + value.name.size(), 2, " =") == 0;
      if (!defines && !std::isdigit(static_cast<unsigned char>(next)))
        return true;
    }
    return false;
  }

  /// Returns what nothing reads, so that nothing is dead, and now and then something else besides.
  void choose(std::vector<std::string> &names, std::vector<std::string> &types) {
    auto add = [&](const Value &value) {
      names.push_back(value.name);
      types.push_back(typeOf(value.shape));
    };
    for (const Value &value : values)
      if (!isRead(value))
        add(value.shape == Shape{open, width} && chance(60) ? selected(value) : value);
    if (chance(40))
      add(oneOf(values));
    if (!extraResult.name.empty())
      add(extraResult);
  }

  /// The rows that the caller asks for.
  Value selected(const Value &x) {
    return emit(fmt::format("select_rows {}, %rows", x.name),
                typeOf(x.shape) + ", !heddle.sequences", x.shape);
  }

  Call arguments() {
    int32_t tokens = 1 + pick(8);
    Batch batch =
        chance(50) ? Batch::single(tokens).withAllRows() : Batch::single(tokens).withLastRows();
    return {numbers({tokens, width}), batch, numbers({tokens, width})};
  }

  std::mt19937 random;
  std::vector<Value> values;
  Value distance, extraResult;
  bool describeRows = false;
  std::map<std::string, Tensor64, std::less<>> params;
  static constexpr char cacheType[] = "!heddle.cache<1 x 1, 4, 4, f32>";
  std::string body, globals, cache = "%c";
  int count = 0;
};

} // namespace

RandomGraph randomGraph(unsigned seed) { return Generator(seed).generate(); }

} // namespace heddle::test
