// Statements on each element by itself.
#include "tests/differential/generator.h"

namespace heddle::test {

Node Generator::unaryOf(const Node &x) {
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

void Generator::unary() {
  if (const Node *x = pickFloat())
    keep(unaryOf(Node(*x)));
}

Node Generator::partnerOf(const Node &x) {
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

Node Generator::binaryOf(const std::string &kind, const Node &x, const Node &y,
                         const char *element) {
  return emit(fmt::format("binary {} {}, {}", kind, x.name, y.name), {x, y},
              *broadcast(x.shape, y.shape), *element ? element : x.element);
}

void Generator::binary() {
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

void Generator::choose() {
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

void Generator::compare() {
  const Node *both = pick([](const Node &x) { return x.is("i1"); });
  if (both && chance(30)) {
    Node x = *both;
    if (chance(40))
      return keep(emit("unary not " + x.name, {x}, x.shape, "i1"));
    const Node *y = pick([&](const Node &y) { return y.is("i1") && broadcast(x.shape, y.shape); });
    return keep(binaryOf(chance(50) ? "and" : "or", x, Node(*y)));
  }
  const Node *picked =
      pick([&](const Node &x) { return x.is("i32") || (x.is("f32") && x.rank() > 0); });
  Node x = *picked, y = partnerOf(x);
  isContinuous &= x.is("i32");
  keep(binaryOf(oneOf<std::string>({"less", "less_equal", "equal"}), x, y, "i1"));
}

void Generator::round() {
  const Node *picked = pickFloat();
  Node x = *picked, low = emit("cast " + x.name + " to bf16", {x}, x.shape, "bf16");
  rounds = true;
  keep(chance(40) ? low : emit("cast " + low.name + " to f32", {low}, x.shape));
}

Node Generator::positionsOf(bool ofKeys) {
  Node p{fmt::format("%v{}", count++), {ofKeys ? keys : tokens}, "i32"};
  body += fmt::format("  {} = heddle.positions {} : (!heddle.sequences) -> tensor<?xi32>\n", p.name,
                      ofKeys ? keyRows : "%rows");
  return p;
}

void Generator::integers() {
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

} // namespace heddle::test
