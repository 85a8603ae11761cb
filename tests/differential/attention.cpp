// Attention in any variant.
#include "tests/differential/generator.h"

#include <fmt/ranges.h>

namespace heddle::test {

Generator::Sides Generator::cachedSides(const Node &x) {
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
                      fmt::join(names, ", "), cacheName, k.name, v.name, layer, cacheType, k.type(),
                      v.type(), cacheType, sides.k.type(), sides.v.type());
  cacheName = names[0];
  keyRows = names[3];
  sides.hasQueries = true;
  sides.keysAre = keyRows;
  return sides;
}

Generator::Sides Generator::tensorSides(const Node &x) {
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

Node Generator::maskOf(const Node &scores, const Sides &sides, std::vector<Node> segments) {
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

Node Generator::columnOf(const Node &numbers, bool isRow) {
  Shape shape = isRow ? Shape{1, numbers.shape[0]} : Shape{numbers.shape[0], 1};
  Node turned = emit(
      fmt::format("reshape {} {{shape = array<i64: {}>}}", numbers.name, isRow ? "1, -1" : "-1, 1"),
      {numbers}, shape, numbers.element);
  return turned;
}

Node Generator::chainOf(Node s, const Sides &sides) {
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

std::string Generator::binaryAndName(const Node &k, const Node &q) {
  lastNode = emit(fmt::format("binary sub {}, {}", k.name, q.name), {k, q},
                  *broadcast(k.shape, q.shape), "i32");
  return lastNode.name;
}

Node Generator::batchedHeads(const Node &x, int64_t heads, int64_t width) {
  Node all = product(x, heads * width);
  Shape split = {x.shape[0], x.shape[1], heads, width};
  Node apart = emit(fmt::format("reshape {} {{shape = array<i64: {}, -1, {}, {}>}}", all.name,
                                x.shape[0], heads, width),
                    {all}, split);
  return emit(fmt::format("transpose {} {{permutation = array<i64: 0, 2, 1, 3>}}", apart.name),
              {apart}, {split[0], heads, split[1], width});
}

void Generator::batchedAttention() {
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

void Generator::attention() {
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

std::vector<Node> Generator::segmentsOf(const Sides &sides) {
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

} // namespace heddle::test
