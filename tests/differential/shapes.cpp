// Statements that change shapes alone; heads.
#include "tests/differential/generator.h"

#include <fmt/ranges.h>

namespace heddle::test {

void Generator::transpose() {
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
  keep(emit(
      fmt::format("transpose {} {{permutation = array<i64: {}>}}", x.name, fmt::join(order, ", ")),
      {x}, shape, x.element));
}

void Generator::reshape() {
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
  keep(emit(fmt::format("reshape {} {{shape = array<i64: {}>}}", x.name, fmt::join(written, ", ")),
            {x}, shape, x.element));
}

void Generator::expand() {
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
    keep(emit(fmt::format("expand {} {{shape = array<i64: {}>}}", x.name, fmt::join(written, ", ")),
              {x}, shape, x.element));
}

void Generator::concat() {
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

void Generator::slice() {
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

void Generator::heads() {
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

Node Generator::splitHeads(const Node &x, int64_t count) {
  return emit(fmt::format("split_heads {} {{heads = {} : i64}}", x.name, count), {x},
              {count, x.shape[0], x.shape[1] / count});
}

Node Generator::gathered(const Node &x, int64_t heads) {
  return emit(fmt::format("gather_heads {} {{heads = {} : i64}}", x.name, heads), {x},
              {heads, x.shape[1], x.shape[2]}, x.element);
}

Node Generator::rotated(const Node &x, bool interleaved, bool allDims) {
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

} // namespace heddle::test
