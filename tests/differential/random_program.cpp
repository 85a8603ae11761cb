#include "tests/differential/random_program.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>
#include <set>

namespace heddle::test {

namespace {

// Sizes that only a call decides, as they stand in shapes.
constexpr int64_t tokens = -1; ///< rows of the batch
constexpr int64_t keys = -2;   ///< rows of the cache's view
constexpr int64_t other = -3;  ///< rows of an input of its own

struct Node {
  std::string name;
  Shape shape;
  std::string element = "f32";

  int64_t rank() const { return int64_t(shape.size()); }
  int64_t dim(int64_t i) const { return shape[size_t(i < 0 ? i + rank() : i)]; }
  bool is(const char *type) const { return element == type; }
  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += size < 0 ? "?x" : fmt::format("{}x", size);
    return text + element + ">";
  }
};

/// The shape that two broadcast to; nothing where they do not.
std::optional<Shape> broadcast(const Shape &a, const Shape &b) {
  Shape result(std::max(a.size(), b.size()), 1);
  for (const Shape *side : {&a, &b})
    for (size_t i = 1; i <= side->size(); ++i) {
      int64_t &into = result[result.size() - i], size = (*side)[side->size() - i];
      if (into != 1 && size != 1 && into != size)
        return std::nullopt;
      into = into == 1 ? size : into;
    }
  return result;
}

class Generator {
public:
  explicit Generator(uint32_t seed) : engine(seed) {}

  RandomProgram run() {
    addArguments();
    for (int64_t statements = 2 + below(9); statements > 0; --statements)
      grow();
    RandomProgram program;
    std::vector<std::string> types, results;
    for (const Node &node : nodes)
      if (!used.contains(node.name) && node.name.starts_with("%v") && results.size() < 8)
        add(node, types, results);
    if (results.empty())
      add(nodes.front(), types, results);
    if (!cacheType.empty()) {
      types.push_back(cacheType);
      results.push_back(cacheName);
    }
    program.model.text = forward(fmt::format("{}", fmt::join(arguments, ", ")),
                                 fmt::format("{}", fmt::join(types, ", ")), body,
                                 fmt::format("{}", fmt::join(results, ", ")), globals);
    program.model.params = params;
    program.model.slots = 2;
    program.model.context = 512;
    program.calls = makeCalls();
    program.isContinuous = isContinuous;
    program.rounds = rounds;
    return program;
  }

private:
  //===-- Chance ----------------------------------------------------------------------------===//

  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <class T>
  const T &oneOf(const std::vector<T> &list) {
    return list[size_t(below(int64_t(list.size())))];
  }
  int64_t size() {
    return oneOf<int64_t>({1, 2, 3, 5, 7, 8, 8, 12, 16, 16, 17, 24, 31, 32, 40, 65});
  }

  /// A node that `wanted` takes, late ones more often; null where there is none.
  template <class Wanted>
  const Node *pick(Wanted &&wanted) {
    std::vector<const Node *> found;
    for (const Node &node : nodes)
      if (wanted(node))
        found.push_back(&node);
    if (found.empty())
      return nullptr;
    size_t late = std::min<size_t>(found.size(), 3);
    return chance(50) ? found[found.size() - 1 - size_t(below(int64_t(late)))] : oneOf(found);
  }
  const Node *pickFloat(int64_t lowest = 0, int64_t highest = 4) {
    return pick(
        [&](const Node &x) { return x.is("f32") && x.rank() >= lowest && x.rank() <= highest; });
  }

  //===-- Text ------------------------------------------------------------------------------===//

  void add(const Node &node, std::vector<std::string> &types, std::vector<std::string> &results) {
    types.push_back(node.type());
    results.push_back(node.name);
  }

  /// Notes that `names` are read and returns their types.
  std::string typesOf(const std::vector<Node> &operands) {
    std::vector<std::string> types;
    for (const Node &operand : operands) {
      used.insert(operand.name);
      types.push_back(operand.type());
    }
    return fmt::format("{}", fmt::join(types, ", "));
  }

  /// `%n = heddle.<text> : (types) -> type`, with `extra` after the types of the operands.
  Node emit(const std::string &text, const std::vector<Node> &operands, Shape shape,
            const std::string &element = "f32", const std::string &extra = "") {
    Node node{fmt::format("%v{}", count++), std::move(shape), element};
    body += fmt::format("  {} = heddle.{} : ({}{}) -> {}\n", node.name, text, typesOf(operands),
                        extra, node.type());
    return node;
  }
  void keep(Node node) { nodes.push_back(std::move(node)); }

  Node constant(const std::string &dense, Shape shape, const std::string &element = "f32") {
    Node node{fmt::format("%v{}", count++), std::move(shape), element};
    body += fmt::format("  {} = heddle.constant dense<{}> : {}\n", node.name, dense, node.type());
    return node;
  }

  Node weight(Shape shape, const std::string &element = "f32") {
    Node node{fmt::format("%v{}", count++), shape, element};
    std::string id = fmt::format("w{}", params.size());
    params[id] = numbers(shape);
    globals += fmt::format("heddle.param @{} : {}\n", id, node.type());
    body += fmt::format("  {} = heddle.weight @{} : {}\n", node.name, id, node.type());
    rounds |= element == "bf16";
    return node;
  }

  //===-- Arguments -------------------------------------------------------------------------===//

  struct Argument {
    Node node;
    int64_t limit = 0; ///< of integers
  };

  void addArgument(const Node &node, int64_t limit = 0) {
    inputs.push_back({node, limit});
    arguments.push_back(node.name + ": " + node.type());
    nodes.push_back(node);
  }

  void addArguments() {
    hasRows = chance(60);
    addArgument({"%x", {tokens, size()}});
    if (hasRows)
      arguments.push_back("%rows: !heddle.sequences");
    if (chance(40))
      addArgument({"%y", {tokens, nodes[0].shape[1]}});
    if (chance(40))
      addArgument({"%u", {other, size()}});
    if (chance(30))
      addArgument({"%h", {oneOf<int64_t>({1, 2, 4}), other, oneOf<int64_t>({4, 8, 16})}});
    if (chance(30))
      addArgument({"%s", {oneOf<int64_t>({1, 2, 3}), size()}});
    if (chance(4))
      addArgument({"%z", {0, size()}});
    if (chance(20))
      addArgument({"%g", {1 + below(3), other, size()}});
    if (chance(30))
      addArgument({"%i", {tokens}, "i32"}, 9);
    if (chance(25))
      addArgument({"%b", {tokens, tokens}, "i1"}, 2);
    if (hasRows && chance(45))
      addCache();
  }

  void addCache() {
    cacheHeads = oneOf<int64_t>({1, 2, 4});
    cacheWidth = oneOf<int64_t>({2, 4, 8, 16, 20});
    cacheValueWidth = chance(60) ? cacheWidth : oneOf<int64_t>({1, 3, 8, 24});
    std::string stored = oneOf<const char *>({"f32", "bf16", "f16", "!heddle.blocks<int8>"});
    cacheElement = stored == "bf16" ? "bf16" : "f32"; // of what is read out of it
    rounds |= stored != "f32";
    cacheLayers = 1 + below(2);
    cacheType = fmt::format("!heddle.cache<{} x {}, {}, {}, {}>", cacheLayers, cacheHeads,
                            cacheWidth, cacheValueWidth, stored);
    cacheName = "%cache";
    arguments.push_back("%cache: " + cacheType);
  }

  Tensor64 numbers(Shape shape) {
    Tensor64 tensor(std::move(shape));
    for (double &value : tensor.data) // exact in bf16
      value = double(below(65) - 32) / 64;
    return tensor;
  }

  int64_t resolve(int64_t dim, int64_t rows, int64_t view, int64_t own) const {
    return dim == tokens ? rows : dim == keys ? view : dim == other ? own : dim;
  }

  std::vector<Call> makeCalls() {
    std::vector<Call> calls;
    std::vector<int32_t> lengths = {0, 0};
    for (int64_t number = 2 + below(3); number > 0; --number) {
      auto rows = int32_t(oneOf<int64_t>({1, 1, 2, 3, 5, 8, 9, 16, 17, 33, 70, 130}));
      if (!hasRows && chance(8))
        rows = 0;
      int64_t own = oneOf<int64_t>({0, 1, 1, 2, 7, 16, 19, 33});
      Batch batch;
      std::vector<int32_t> parts = {rows};
      if (rows > 1 && chance(40))
        parts = {rows / 3, rows - rows / 3};
      bool swaps = chance(30);
      int32_t first = 0;
      for (size_t i = 0; i < parts.size(); ++i) {
        int32_t slot = int32_t(swaps ? 1 - i : i);
        int32_t position = cacheType.empty() ? int32_t(below(30)) : lengths[size_t(slot)];
        if (chance(15) && !cacheType.empty())
          position = 0; // begins anew
        batch.sequences.push_back({first, parts[i], position, slot});
        lengths[size_t(slot)] = position + parts[i];
        first += parts[i];
      }
      Batch wanted = chance(50) ? Batch(batch).withAllRows() : Batch(batch).withLastRows();
      int64_t view = 0;
      for (const auto &sequence : batch.sequences)
        view += (sequence.position + sequence.length + 15) / 16 * 16;
      Call call;
      for (const Argument &input : inputs) {
        Shape shape;
        for (int64_t dim : input.node.shape)
          shape.push_back(resolve(dim, rows, view, own));
        Tensor64 tensor = numbers(shape);
        for (double &value : tensor.data)
          value = input.limit ? double(below(input.limit)) : value * 4;
        call.push_back(std::move(tensor));
        if (input.node.name == "%x" && hasRows)
          call.push_back(wanted);
      }
      calls.push_back(std::move(call));
    }
    return calls;
  }

  //===-- Statements ------------------------------------------------------------------------===//

  void grow() {
    switch (below(26)) {
    case 0:
    case 1:
      return unary();
    case 2:
    case 3:
    case 4:
      return binary();
    case 5:
      return choose();
    case 6:
      return compare();
    case 7:
      return round();
    case 8:
      return integers();
    case 9:
    case 10:
      return multiplyByWeight();
    case 11:
      return multiply();
    case 12:
      return gate();
    case 13:
      return norm();
    case 14:
      return reduce();
    case 15:
      return softmax();
    case 16:
      return transpose();
    case 17:
      return reshape();
    case 18:
      return expand();
    case 19:
      return chance(50) ? concat() : slice();
    case 20:
      return heads();
    case 21:
      return chance(50) ? lookUp() : selectRows();
    case 22:
      return batchedAttention();
    default:
      return attention();
    }
  }

  Node unaryOf(const Node &x) {
    static const std::vector<std::string> kinds = {
        "tanh", "neg",  "abs", "sigmoid", "relu", "silu", "gelu_erf", "gelu_tanh",
        "erf",  "tanh", "sin", "cos",     "sqrt", "exp",  "square"};
    std::string kind = oneOf(kinds);
    if (kind == "sqrt" || kind == "exp") { // of what is not negative, and not large
      Node bounded = emit("unary sigmoid " + x.name, {x}, x.shape);
      return emit(fmt::format("unary {} {}", kind, bounded.name), {bounded}, x.shape);
    }
    return emit(fmt::format("unary {} {}", kind, x.name), {x}, x.shape);
  }
  void unary() {
    if (const Node *x = pickFloat())
      keep(unaryOf(Node(*x)));
  }

  /// A node that broadcasts with `x` and fits the same type; or a constant.
  Node partnerOf(const Node &x) {
    const Node *y = pick([&](const Node &y) {
      auto shape = broadcast(x.shape, y.shape);
      return y.element == x.element && shape && shape->size() <= 4;
    });
    if (y && chance(75))
      return *y;
    if (x.is("i32"))
      return constant(std::to_string(below(5)), {}, "i32");
    return chance(50) ? constant(oneOf<std::string>({"0.5", "-1.5", "0.0", "2.0", "1.0"}), {})
                      : weight({x.rank() && x.shape.back() > 0 ? x.shape.back() : 1});
  }

  Node binaryOf(const std::string &kind, const Node &x, const Node &y, const char *element = "") {
    return emit(fmt::format("binary {} {}, {}", kind, x.name, y.name), {x, y},
                *broadcast(x.shape, y.shape), *element ? element : x.element);
  }
  void binary() {
    const Node *picked = pickFloat();
    if (!picked)
      return;
    Node x = *picked, y = partnerOf(x);
    std::string kind = oneOf<std::string>({"add", "add", "sub", "mul", "mul", "max", "min", "div"});
    if (kind == "div") {
      Node square = emit("unary square " + y.name, {y}, y.shape);
      y = binaryOf("add", square, constant("0.5", {}));
    }
    keep(chance(50) && kind != "div" ? binaryOf(kind, y, x) : binaryOf(kind, x, y));
  }

  void choose() {
    const Node *condition = pick([](const Node &c) { return c.is("i1"); });
    if (!condition)
      return compare();
    Node c = *condition;
    const Node *picked = pick([&](const Node &x) {
      auto shape = broadcast(c.shape, x.shape);
      return x.is("f32") && shape && shape->size() <= 4;
    });
    if (!picked)
      return;
    Node x = *picked, y = partnerOf(x);
    auto shape = broadcast(*broadcast(x.shape, y.shape), c.shape);
    if (!shape || shape->size() > 4)
      return;
    if (chance(50))
      std::swap(x, y);
    keep(emit(fmt::format("select {}, {}, {}", c.name, x.name, y.name), {c, x, y}, *shape));
  }

  void compare() {
    const Node *both = pick([](const Node &x) { return x.is("i1"); });
    if (both && chance(30)) {
      Node x = *both;
      if (chance(40))
        return keep(emit("unary not " + x.name, {x}, x.shape, "i1"));
      const Node *y =
          pick([&](const Node &y) { return y.is("i1") && broadcast(x.shape, y.shape); });
      return keep(binaryOf(chance(50) ? "and" : "or", x, Node(*y)));
    }
    const Node *picked =
        pick([&](const Node &x) { return x.is("i32") || (x.is("f32") && x.rank() > 0); });
    Node x = *picked, y = partnerOf(x);
    isContinuous &= x.is("i32");
    keep(binaryOf(oneOf<std::string>({"less", "less_equal", "equal"}), x, y, "i1"));
  }

  void round() {
    const Node *picked = pickFloat();
    Node x = *picked, low = emit("cast " + x.name + " to bf16", {x}, x.shape, "bf16");
    rounds = true;
    keep(chance(40) ? low : emit("cast " + low.name + " to f32", {low}, x.shape));
  }

  Node positionsOf(bool ofKeys = false) {
    Node p{fmt::format("%v{}", count++), {ofKeys ? keys : tokens}, "i32"};
    body += fmt::format("  {} = heddle.positions {} : (!heddle.sequences) -> tensor<?xi32>\n",
                        p.name, ofKeys ? keyRows : "%rows");
    return p;
  }

  void integers() {
    const Node *picked = pick([](const Node &x) { return x.is("i32") || x.is("i1"); });
    if (!picked) {
      if (hasRows)
        keep(positionsOf());
      return;
    }
    Node x = *picked;
    if (x.is("i32") && chance(50))
      return keep(binaryOf(oneOf<std::string>({"add", "sub", "max", "min"}), x, partnerOf(x)));
    Node f = emit("cast " + x.name + " to f32", {x}, x.shape);
    // Large numbers would drown the others.
    keep(binaryOf("mul", f, constant("0.03125", {})));
  }

  void multiplyByWeight() {
    const Node *picked = pick([](const Node &x) {
      return x.rank() >= 2 && x.rank() <= 4 && x.dim(-1) >= 0 && (x.is("f32") || x.is("bf16"));
    });
    if (!picked)
      return;
    Node x = *picked;
    bool transposed = chance(50);
    int64_t n = size(), k = x.shape.back();
    Node w = weight(transposed ? Shape{n, k} : Shape{k, n}, chance(35) ? "bf16" : "f32");
    Shape shape = x.shape;
    shape.back() = n;
    keep(emit(fmt::format("matmul {}, {}{}", x.name, w.name, transposed ? " {transpose_rhs}" : ""),
              {x, w}, shape));
  }

  /// Of two nodes.
  void multiply() {
    const Node *left = pickFloat(2);
    if (!left)
      return;
    Node x = *left;
    bool transposed = chance(50);
    const Node *right = pick([&](const Node &y) {
      if (y.rank() != x.rank() || !(y.is("f32") || y.is("bf16")) ||
          y.dim(transposed ? -1 : -2) != x.dim(-1))
        return false;
      return std::equal(x.shape.begin(), x.shape.end() - 2, y.shape.begin());
    });
    if (!right)
      return;
    Node y = *right;
    Shape shape = x.shape;
    shape.back() = y.dim(transposed ? -2 : -1);
    rounds |= y.is("bf16");
    Node product =
        emit(fmt::format("matmul {}, {}{}", x.name, y.name, transposed ? " {transpose_rhs}" : ""),
             {x, y}, shape);
    keep(binaryOf("mul", product, constant("0.125", {})));
  }

  void gate() {
    const Node *picked =
        pick([](const Node &x) { return x.is("f32") && x.rank() == 2 && x.dim(1) > 0; });
    if (!picked)
      return;
    Node x = *picked;
    int64_t d = x.shape[1], hidden = size();
    bool transposed = chance(50);
    std::string element = chance(30) ? "bf16" : "f32";
    Shape in = transposed ? Shape{hidden, d} : Shape{d, hidden};
    Shape out = transposed ? Shape{d, hidden} : Shape{hidden, d};
    Node g = weight(in, element), u = weight(in, element), down = weight(out, element);
    std::string kind = oneOf<std::string>({"silu", "gelu_erf", "gelu_tanh", "relu"});
    std::string marks = transposed ? " {transpose_rhs}" : "";
    if (chance(40))
      return keep(emit(fmt::format("gated_mlp {} {}, {}, {}, {}{}", kind, x.name, g.name, u.name,
                                   down.name, transposed ? " {transpose_weights}" : ""),
                       {x, g, u, down}, x.shape));
    Node a =
        emit(fmt::format("matmul {}, {}{}", x.name, g.name, marks), {x, g}, {x.shape[0], hidden});
    Node b =
        emit(fmt::format("matmul {}, {}{}", x.name, u.name, marks), {x, u}, {x.shape[0], hidden});
    if (chance(20))
      keep(a);
    keep(binaryOf("mul", emit("unary " + kind + " " + a.name, {a}, a.shape), b));
  }

  void norm() {
    const Node *picked =
        pick([](const Node &x) { return x.is("f32") && x.rank() > 0 && x.dim(-1) > 0; });
    if (!picked)
      return;
    Node x = *picked;
    bool isLayer = chance(50);
    std::vector<Node> operands = {x};
    std::string parts;
    for (const char *part : {"weight", "bias"})
      if (chance(50) && (isLayer || *part == 'w')) {
        operands.push_back(weight({x.shape.back()}));
        parts += fmt::format(" {}({})", part, operands.back().name);
      }
    keep(emit(fmt::format("norm {} {}{} {{epsilon = 1.0e-01 : f64}}", isLayer ? "layer" : "rms",
                          x.name, parts),
              operands, x.shape));
  }

  void reduce() {
    const Node *picked = pickFloat(1);
    Node x = *picked;
    int64_t axis = below(x.rank());
    Shape shape = x.shape;
    bool mayBeEmpty = shape[size_t(axis)] == other || shape[size_t(axis)] == 0 ||
                      (shape[size_t(axis)] == tokens && !hasRows);
    shape[size_t(axis)] = 1;
    std::string kind = mayBeEmpty ? "sum" : oneOf<std::string>({"sum", "mean", "max", "min"});
    keep(emit(fmt::format("reduce {} {} {{axis = {} : i64}}", kind, x.name, axis), {x}, shape));
  }

  void softmax() {
    const Node *picked = pickFloat(1);
    Node x = *picked;
    if (x.rank() >= 2 && chance(30) && (x.rank() == 2 || x.dim(-3) > 0)) {
      Node sink = weight({x.rank() == 2 ? 1 : x.dim(-3)});
      return keep(emit(fmt::format("softmax {} sink({})", x.name, sink.name), {x, sink}, x.shape));
    }
    keep(
        emit(fmt::format("softmax {} {{axis = {} : i64}}", x.name, below(x.rank())), {x}, x.shape));
  }

  //===-- Shapes ----------------------------------------------------------------------------===//

  void transpose() {
    const Node *picked = pick([](const Node &x) { return x.rank() > 0; });
    Node x = *picked;
    std::vector<int64_t> order(size_t(x.rank()));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = int64_t(i);
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[size_t(below(int64_t(i)))]);
    Shape shape;
    for (int64_t axis : order)
      shape.push_back(x.shape[size_t(axis)]);
    keep(emit(fmt::format("transpose {} {{permutation = array<i64: {}>}}", x.name,
                          fmt::join(order, ", ")),
              {x}, shape, x.element));
  }

  /// Two neighbours become one, or one becomes two.
  void reshape() {
    const Node *picked = pick([](const Node &x) {
      int64_t open = 0;
      for (int64_t size : x.shape)
        open += size < 0;
      return x.rank() > 0 && open <= 1;
    });
    if (!picked)
      return;
    Node x = *picked;
    Shape shape = x.shape;
    if (chance(50) && shape.size() > 1) {
      size_t i = size_t(below(x.rank() - 1));
      if (shape[i] < 0 || shape[i + 1] < 0)
        return;
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + int64_t(i) + 1);
    } else {
      size_t i = size_t(below(x.rank()));
      int64_t factor = chance(30) ? 1 : 2;
      if (shape.size() > 3 || (factor == 2 && (shape[i] <= 0 || shape[i] % 2)))
        return;
      shape[i] /= factor;
      shape.insert(shape.begin() + int64_t(i) + below(2), factor);
    }
    Shape written = shape;
    bool isOpen = false;
    for (int64_t &size : written) {
      isOpen |= size < 0;
      size = std::max<int64_t>(size, -1);
    }
    for (int64_t size : shape)
      if (isOpen && size == 0)
        return;
    keep(
        emit(fmt::format("reshape {} {{shape = array<i64: {}>}}", x.name, fmt::join(written, ", ")),
             {x}, shape, x.element));
  }

  void expand() {
    const Node *picked = pick([](const Node &x) { return x.rank() < 4; });
    Node x = *picked;
    Shape shape = x.shape, written = x.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      written[i] = -1;
      if (shape[i] == 1 && chance(70))
        written[i] = shape[i] = 1 + below(5);
    }
    if (chance(40)) {
      shape.insert(shape.begin(), 1 + below(4));
      written.insert(written.begin(), shape.front());
    }
    if (shape != x.shape)
      keep(emit(
          fmt::format("expand {} {{shape = array<i64: {}>}}", x.name, fmt::join(written, ", ")),
          {x}, shape, x.element));
  }

  void concat() {
    const Node *picked = pick([](const Node &x) { return x.rank() > 0; });
    Node x = *picked;
    int64_t axis = below(x.rank());
    if (x.dim(axis) < 0 || x.dim(axis) > 70)
      return;
    const Node *second = pick([&](const Node &y) {
      if (y.rank() != x.rank() || y.element != x.element || y.dim(axis) < 0)
        return false;
      for (int64_t i = 0; i < x.rank(); ++i)
        if (i != axis && y.dim(i) != x.dim(i))
          return false;
      return true;
    });
    Node y = *second;
    Shape shape = x.shape;
    shape[size_t(axis)] += y.dim(axis);
    keep(emit(fmt::format("concat {}, {} {{axis = {} : i64}}", x.name, y.name, axis), {x, y}, shape,
              x.element));
  }

  void slice() {
    const Node *picked = pick([](const Node &x) { return x.rank() > 0; });
    Node x = *picked;
    int64_t axis = below(x.rank()), whole = x.dim(axis);
    if (whole < 1)
      return;
    int64_t part = chance(3) ? 0 : 1 + below(whole), start = below(whole - part + 1);
    Shape shape = x.shape;
    shape[size_t(axis)] = part;
    keep(emit(fmt::format("slice {} {{axis = {} : i64, start = {} : i64, size = {} : i64}}", x.name,
                          axis, start, part),
              {x}, shape, x.element));
  }

  void heads() {
    const Node *picked = pickFloat(2, 3);
    if (!picked)
      return;
    Node x = *picked;
    if (x.rank() == 2) {
      for (int64_t count : {4, 3, 2})
        if (x.shape[1] > 0 && x.shape[1] % count == 0)
          return keep(splitHeads(x, count));
      return;
    }
    if (x.shape[0] < 1 || x.shape[2] < 0)
      return;
    if (x.shape[2] > 1 && x.shape[1] == tokens && hasRows && chance(40))
      return keep(rotated(x, chance(50), chance(70)));
    if (chance(50))
      return keep(emit("merge_heads " + x.name, {x}, {x.shape[1], x.shape[0] * x.shape[2]}));
    if (x.shape[0] < 20)
      keep(gathered(x, (1 + below(3)) * x.shape[0]));
  }

  Node splitHeads(const Node &x, int64_t count) {
    return emit(fmt::format("split_heads {} {{heads = {} : i64}}", x.name, count), {x},
                {count, x.shape[0], x.shape[1] / count});
  }
  Node gathered(const Node &x, int64_t heads) {
    return emit(fmt::format("gather_heads {} {{heads = {} : i64}}", x.name, heads), {x},
                {heads, x.shape[1], x.shape[2]}, x.element);
  }
  Node rotated(const Node &x, bool interleaved, bool allDims) {
    Node p = positionsOf();
    std::string dims = allDims || x.shape[2] < 4
                           ? std::string()
                           : fmt::format(", dims = {} : i64", x.shape[2] / 4 * 2);
    if (x.shape[2] % 2)
      dims = fmt::format(", dims = {} : i64", x.shape[2] - 1);
    return emit(fmt::format("rotate {} {}, {} {{base = 1.0e+04 : f64{}}}",
                            interleaved ? "interleaved" : "half_split", x.name, p.name, dims),
                {x, p}, x.shape);
  }

  void lookUp() {
    const Node *ids = pick([](const Node &x) { return x.name == "%i"; });
    if (!ids)
      return;
    Node i = *ids, table = weight({9, size()}, chance(30) ? "bf16" : "f32");
    keep(emit(fmt::format("embed {}, {}", table.name, i.name), {table, i},
              {tokens, table.shape[1]}));
  }

  void selectRows() {
    // Its rows are a size of their own: nothing else can be made of it with others.
    const Node *picked =
        pick([](const Node &x) { return x.is("f32") && x.rank() == 2 && x.dim(0) == tokens; });
    if (!picked || !hasRows || chance(50))
      return;
    Node x = *picked;
    nodes.push_back(emit(fmt::format("select_rows {}, %rows", x.name), {x}, {-4, x.shape[1]}, "f32",
                         ", !heddle.sequences"));
  }

  //===-- Attention -------------------------------------------------------------------------===//

  /// Queries, keys and values `[.., heads, rows, width]`, and what describes their rows.
  struct Sides {
    Node q, k, v;
    bool hasQueries = false;
    std::string keysAre; ///< the sequences of the keys, or nothing
  };

  Node product(const Node &x, int64_t n) { return product(x, n, chance(25) ? "bf16" : "f32"); }

  Node product(const Node &x, int64_t n, const char *element) {
    Node w = weight({n, x.shape.back()}, element);
    Shape shape = x.shape;
    shape.back() = n;
    return emit(fmt::format("matmul {}, {} {{transpose_rhs}}", x.name, w.name), {x, w}, shape);
  }

  Sides cachedSides(const Node &x) {
    Sides sides;
    int64_t heads = cacheHeads * (1 + below(3));
    // Mostly what may become one product: weights of one type, biases or none, turned alike.
    const char *element = chance(25) ? "bf16" : "f32";
    bool biased = chance(40);
    auto projected = [&](int64_t count, int64_t width) {
      Node y = chance(95) ? product(x, count * width, element) : product(x, count * width);
      if (biased && chance(95))
        y = binaryOf("add", y, weight({count * width}));
      return splitHeads(y, count);
    };
    sides.q = projected(heads, cacheWidth);
    Node k = projected(cacheHeads, cacheWidth), v = projected(cacheHeads, cacheValueWidth);
    if (cacheWidth > 1 && chance(70)) {
      bool interleaved = chance(50), allDims = chance(70);
      sides.q = rotated(sides.q, interleaved, allDims);
      k = rotated(k, chance(95) ? interleaved : !interleaved, allDims);
    }
    int64_t layer = below(cacheLayers);
    std::string names[4];
    for (std::string &name : names)
      name = fmt::format("%v{}", count++);
    sides.k = {names[1], {cacheHeads, keys, cacheWidth}, cacheElement};
    sides.v = {names[2], {cacheHeads, keys, cacheValueWidth}, cacheElement};
    typesOf({k, v});
    body += fmt::format("  {} = heddle.cache_append {}, {}, {}, %rows {{layer = {} : i64}} : ({}, "
                        "{}, {}, !heddle.sequences) -> ({}, {}, {}, !heddle.sequences)\n",
                        fmt::join(names, ", "), cacheName, k.name, v.name, layer, cacheType,
                        k.type(), v.type(), cacheType, sides.k.type(), sides.v.type());
    cacheName = names[0];
    keyRows = names[3];
    sides.hasQueries = true;
    sides.keysAre = keyRows;
    return sides;
  }

  /// Of two tensors of rows; the same one, or another of other rows.
  Sides tensorSides(const Node &x) {
    Sides sides;
    const Node *second = pick([&](const Node &y) {
      return y.is("f32") && y.rank() == 2 && y.dim(1) > 0 && y.dim(0) != -4;
    });
    Node y = chance(70) ? x : *second;
    int64_t kvHeads = oneOf<int64_t>({1, 2, 4}), heads = kvHeads * (1 + below(3));
    int64_t width = oneOf<int64_t>({1, 3, 4, 8, 16}), valueWidth = oneOf<int64_t>({1, 4, 8, 17});
    sides.q = splitHeads(product(x, heads * width), heads);
    sides.k = splitHeads(product(y, kvHeads * width), kvHeads);
    sides.v = splitHeads(product(y, kvHeads * valueWidth), kvHeads);
    sides.hasQueries = hasRows && x.shape[0] == tokens && chance(60);
    if (hasRows && y.shape[0] == tokens && (sides.hasQueries || chance(20)))
      sides.keysAre = "%rows";
    return sides;
  }

  Node maskOf(const Node &scores, const Sides &sides, std::vector<Node> segments) {
    std::string operands, types, attributes;
    std::vector<Node> extra;
    auto attribute = [&](const std::string &text) {
      attributes += (attributes.empty() ? "" : ", ") + text;
    };
    if (sides.hasQueries) {
      operands += " queries(%rows)";
      types += ", !heddle.sequences";
    }
    if (!sides.keysAre.empty()) {
      operands += " keys(" + sides.keysAre + ")";
      types += ", !heddle.sequences";
    }
    const Node *tensor = pick([&](const Node &m) {
      auto together = broadcast(m.shape, scores.shape);
      return m.is("i1") && together && *together == scores.shape;
    });
    if (tensor && chance(50)) {
      operands += fmt::format(" mask({})", tensor->name);
      types += ", " + tensor->type();
      used.insert(tensor->name);
    }
    if (!segments.empty() && chance(60)) {
      operands += fmt::format(" segments({}, {})", segments[0].name, segments[1].name);
      types += ", " + typesOf(segments);
    }
    if (chance(65))
      attribute("causal");
    if (!attributes.empty() && chance(20))
      attribute(fmt::format("prefix = {} : i64", below(20)));
    if (chance(30))
      attribute(fmt::format("window = {} : i64", 1 + below(24)));
    if (chance(25))
      attribute(fmt::format("chunk = {} : i64", 1 + below(24)));
    return emit(fmt::format("mask {}{} {{{}}}", scores.name, operands, attributes), {scores},
                scores.shape, "f32", types);
  }

  Node columnOf(const Node &numbers, bool isRow) {
    Shape shape = isRow ? Shape{1, numbers.shape[0]} : Shape{numbers.shape[0], 1};
    Node turned = emit(fmt::format("reshape {} {{shape = array<i64: {}>}}", numbers.name,
                                   isRow ? "1, -1" : "-1, 1"),
                       {numbers}, shape, numbers.element);
    return turned;
  }

  Node chainOf(Node s, const Sides &sides) {
    for (int64_t steps = below(5); steps > 0; --steps)
      switch (below(7)) {
      case 0:
        s = binaryOf("mul", s, constant("0.3125", {}));
        break;
      case 1:
        s = emit("unary tanh " + s.name, {s}, s.shape);
        break;
      case 2:
        s = binaryOf("add", s, weight({s.dim(-3), 1, 1}));
        break;
      case 3:
        s = unaryOf(s);
        break;
      case 4:
        if (sides.hasQueries && !sides.keysAre.empty()) {
          Node q = columnOf(positionsOf(), false);
          Node k = columnOf(positionsOf(sides.keysAre != "%rows"), true);
          Node far = emit("cast " + binaryAndName(k, q) + " to f32", {lastNode}, lastNode.shape);
          s = binaryOf("add", s, binaryOf("mul", far, weight({s.dim(-3), 1, 1})));
        }
        break;
      case 5:
        if (const Node *bias = pick([&](const Node &b) {
              auto together = broadcast(b.shape, s.shape);
              return b.is("f32") && together && *together == s.shape;
            }))
          s = binaryOf(chance(70) ? "add" : "mul", s, Node(*bias));
        break;
      default:
        s = binaryOf("mul", s, constant(oneOf<std::string>({"-0.5", "2.0", "1.0"}), {}));
      }
    return s;
  }

  /// Emits k - q and returns its name; the node is `lastNode`.
  std::string binaryAndName(const Node &k, const Node &q) {
    lastNode = emit(fmt::format("binary sub {}, {}", k.name, q.name), {k, q},
                    *broadcast(k.shape, q.shape), "i32");
    return lastNode.name;
  }

  /// Heads `[batch, heads, rows, width]` of `[batch, rows, ..]`.
  Node batchedHeads(const Node &x, int64_t heads, int64_t width) {
    Node all = product(x, heads * width);
    Shape split = {x.shape[0], x.shape[1], heads, width};
    Node apart = emit(fmt::format("reshape {} {{shape = array<i64: {}, -1, {}, {}>}}", all.name,
                                  x.shape[0], heads, width),
                      {all}, split);
    return emit(fmt::format("transpose {} {{permutation = array<i64: 0, 2, 1, 3>}}", apart.name),
                {apart}, {split[0], heads, split[1], width});
  }

  /// With an explicit batch, and rows that nothing describes.
  void batchedAttention() {
    const Node *picked = pick([](const Node &x) {
      return x.is("f32") && x.rank() == 3 && x.dim(0) > 0 && x.dim(1) < 0 && x.dim(1) > -4 &&
             x.dim(2) > 0;
    });
    if (!picked)
      return;
    Node x = *picked;
    Sides sides;
    int64_t heads = 1 + below(3);
    sides.q = batchedHeads(x, heads, oneOf<int64_t>({1, 4, 9}));
    sides.k = batchedHeads(x, heads, sides.q.shape[3]);
    sides.v = batchedHeads(x, heads, oneOf<int64_t>({1, 8, 17}));
    Shape scores = sides.q.shape;
    scores.back() = x.shape[1];
    Node s = emit(fmt::format("matmul {}, {} {{transpose_rhs}}", sides.q.name, sides.k.name),
                  {sides.q, sides.k}, scores);
    s = chainOf(s, sides);
    if (chance(70))
      s = maskOf(s, sides, {});
    Node p = emit("softmax " + s.name, {s}, s.shape);
    keep(emit(fmt::format("matmul {}, {}", p.name, sides.v.name), {p, sides.v}, sides.v.shape));
  }

  void attention() {
    const Node *picked = pick([](const Node &x) {
      return x.is("f32") && x.rank() == 2 && x.dim(0) < 0 && x.dim(0) > -4 && x.dim(1) > 0;
    });
    if (!picked)
      return;
    Node x = *picked;
    bool cached = !cacheType.empty() && x.shape[0] == tokens && chance(70);
    Sides sides = cached ? cachedSides(x) : tensorSides(x);
    int64_t heads = sides.q.shape[0], kvHeads = sides.k.shape[0];
    Node k = sides.k, v = sides.v;
    if (kvHeads != heads) {
      k = gathered(k, heads);
      v = gathered(v, heads);
    }
    Node q = sides.q;
    Node s = emit(fmt::format("matmul {}, {} {{transpose_rhs}}", q.name, k.name), {q, k},
                  {heads, q.shape[1], k.shape[1]});
    s = chainOf(s, sides);
    std::vector<Node> segments = segmentsOf(sides);
    for (int64_t masks = chance(85) + chance(25); masks > 0; --masks)
      s = maskOf(s, sides, segments);
    if (chance(10))
      s = chainOf(s, sides);
    Node p;
    if (chance(30)) {
      Node sink = weight({heads});
      p = emit(fmt::format("softmax {} sink({})", s.name, sink.name), {s, sink}, s.shape);
    } else {
      p = emit("softmax " + s.name, {s}, s.shape);
    }
    if (chance(5))
      p = unaryOf(p);
    Node o =
        emit(fmt::format("matmul {}, {}", p.name, v.name), {p, v}, {heads, q.shape[1], v.shape[2]});
    if (chance(5))
      keep(p);
    keep(chance(80) ? emit("merge_heads " + o.name, {o}, {o.shape[1], heads * o.shape[2]}) : o);
  }

  /// Numbers of queries and of keys, or none.
  std::vector<Node> segmentsOf(const Sides &sides) {
    if (sides.q.shape[1] == sides.k.shape[1]) {
      const Node *numbers =
          pick([&](const Node &x) { return x.is("i32") && x.shape == Shape{sides.q.shape[1]}; });
      if (numbers)
        return {*numbers, *numbers};
    }
    if (!sides.hasQueries || sides.keysAre.empty() || !chance(40))
      return {};
    // Halves of the positions: their runs are documents.
    std::vector<Node> both = {positionsOf(), positionsOf(sides.keysAre != "%rows")};
    int64_t bound = below(20);
    for (Node &numbers : both)
      numbers = binaryOf("max", numbers, constant(std::to_string(bound), {}, "i32"));
    return both;
  }

  std::mt19937 engine;
  std::vector<Node> nodes;
  std::vector<Argument> inputs;
  std::vector<std::string> arguments;
  std::set<std::string> used;
  std::map<std::string, Tensor64, std::less<>> params;
  std::string body, globals, cacheType, cacheName, cacheElement, keyRows = "%rows";
  int64_t cacheHeads = 0, cacheWidth = 0, cacheValueWidth = 0, cacheLayers = 0;
  Node lastNode;
  int count = 0;
  bool hasRows = false, isContinuous = true, rounds = false;
};

} // namespace

RandomProgram randomProgram(uint32_t seed) { return Generator(seed).run(); }

} // namespace heddle::test
