// Products, sums over an axis, and look-ups.
#include "tests/differential/generator.h"

namespace heddle::test {

/// Weights in blocks that are about as near to fp64 as bf16 is, of each kind of activations.
std::string Generator::blocks() {
  return fmt::format("!heddle.blocks<{}>", chance(70) ? "q8_0" : "int8");
}

void Generator::multiplyByWeight() {
  const Node *picked = pick([](const Node &x) {
    return x.rank() >= 2 && x.rank() <= 4 && x.dim(-1) >= 0 && (x.is("f32") || x.is("bf16"));
  });
  if (!picked)
    return;
  Node x = *picked;
  bool transposed = chance(50);
  int64_t n = size(), k = x.shape.back();
  std::string element = transposed && k > 0 && chance(40) ? blocks() : chance(35) ? "bf16" : "f32";
  Node w = weight(transposed ? Shape{n, k} : Shape{k, n}, element);
  Shape shape = x.shape;
  shape.back() = n;
  keep(emit(fmt::format("matmul {}, {}{}", x.name, w.name, transposed ? " {transpose_rhs}" : ""),
            {x, w}, shape));
}

void Generator::multiply() {
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

void Generator::gate() {
  const Node *picked =
      pick([](const Node &x) { return x.is("f32") && x.rank() == 2 && x.dim(1) > 0; });
  if (!picked)
    return;
  Node x = *picked;
  int64_t d = x.shape[1], hidden = size();
  bool transposed = chance(50);
  bool quantised = transposed && chance(50);
  std::string element = quantised ? blocks() : chance(30) ? "bf16" : "f32";
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
  Node gated = binaryOf("mul", emit("unary " + kind + " " + a.name, {a}, a.shape), b);
  keep(quantised && chance(70) ? product(gated, d, blocks().c_str()) : gated);
}

void Generator::norm() {
  const Node *picked =
      pick([](const Node &x) { return x.is("f32") && x.rank() > 0 && x.dim(-1) > 0; });
  if (!picked)
    return;
  Node x = *picked;
  bool isBlocks = x.rank() >= 2 && x.rank() <= 4 && chance(25);
  if (isBlocks) // as wide as rows must be for a norm to write blocks
    x = product(x, oneOf<int64_t>({255, 256, 256, 300}), "f32");
  bool isLayer = chance(50);
  std::vector<Node> operands = {x};
  std::string parts;
  for (const char *part : {"weight", "bias"})
    if (chance(50) && (isLayer || *part == 'w')) {
      operands.push_back(weight({x.shape.back()}));
      parts += fmt::format(" {}({})", part, operands.back().name);
    }
  Node norm = emit(fmt::format("norm {} {}{} {{epsilon = 1.0e-01 : f64}}",
                               isLayer ? "layer" : "rms", x.name, parts),
                   operands, x.shape);
  // Read by products that take blocks, of one kind or of both, and by others or not.
  int64_t products = isBlocks ? 1 + below(2) : 0;
  for (int64_t i = 0; i < products; ++i)
    keep(product(norm, size(), blocks().c_str()));
  if (products == 0 || chance(20))
    keep(norm);
}

void Generator::reduce() {
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

void Generator::softmax() {
  const Node *picked = pickFloat(1);
  Node x = *picked;
  if (x.rank() >= 2 && chance(30) && (x.rank() == 2 || x.dim(-3) > 0)) {
    Node sink = weight({x.rank() == 2 ? 1 : x.dim(-3)});
    return keep(emit(fmt::format("softmax {} sink({})", x.name, sink.name), {x, sink}, x.shape));
  }
  keep(emit(fmt::format("softmax {} {{axis = {} : i64}}", x.name, below(x.rank())), {x}, x.shape));
}

void Generator::lookUp() {
  const Node *ids = pick([](const Node &x) { return x.name == "%i"; });
  if (!ids)
    return;
  Node i = *ids, table = weight({9, size()}, chance(30) ? "bf16" : "f32");
  keep(emit(fmt::format("embed {}, {}", table.name, i.name), {table, i}, {tokens, table.shape[1]}));
}

void Generator::selectRows() {
  // Its rows are a size of their own: nothing else can be made of it with others.
  const Node *picked =
      pick([](const Node &x) { return x.is("f32") && x.rank() == 2 && x.dim(0) == tokens; });
  if (!picked || !hasRows || chance(50))
    return;
  Node x = *picked;
  nodes.push_back(emit(fmt::format("select_rows {}, %rows", x.name), {x}, {-4, x.shape[1]}, "f32",
                       ", !heddle.sequences"));
}

Node Generator::product(const Node &x, int64_t n, const char *element) {
  Node w = weight({n, x.shape.back()}, element);
  Shape shape = x.shape;
  shape.back() = n;
  return emit(fmt::format("matmul {}, {} {{transpose_rhs}}", x.name, w.name), {x, w}, shape);
}

} // namespace heddle::test
