// Random graphs of operations that move, combine and fold elements, as native code against the
// interpreter: they find what goes wrong between kernels, views and joined dimensions. A failure
// prints its seed and the graph.
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <random>

namespace heddle::test {
namespace {

constexpr int64_t open = -1; ///< the dimension that is known only in a call

struct Node {
  std::string name;
  Shape shape;

  int64_t rank() const { return int64_t(shape.size()); }
  std::string type() const {
    std::string text = "tensor<";
    for (int64_t size : shape)
      text += size == open ? "?x" : fmt::format("{}x", size);
    return text + "f32>";
  }
};

class Generator {
public:
  explicit Generator(unsigned seed) : engine(seed) {
    nodes.push_back({"%x", {open, 24}});
    nodes.push_back({"%h", {3, open, 8}});
    nodes.push_back({"%v", {24}});
  }

  Model model() {
    for (int i = 0; i < 12; ++i)
      grow();
    std::string types, results;
    for (size_t i = nodes.size() - 3; i < nodes.size(); ++i) {
      types += (types.empty() ? "" : ", ") + nodes[i].type();
      results += (results.empty() ? "" : ", ") + nodes[i].name;
    }
    Model model;
    model.text = forward(
        fmt::format("%x: {}, %h: {}, %v: {}", nodes[0].type(), nodes[1].type(), nodes[2].type()),
        types, body, results);
    return model;
  }

private:
  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  template <class T>
  const T &pick(const std::vector<T> &list) {
    return list[size_t(below(int64_t(list.size())))];
  }

  /// Adds `%n = heddle.<operation> <operands> <attributes>`.
  void add(const std::string &operation, std::vector<Node> operands, const std::string &attributes,
           Shape shape) {
    Node node{fmt::format("%{}", nodes.size()), std::move(shape)};
    std::string names, types;
    for (const Node &operand : operands) {
      names += (names.empty() ? "" : ", ") + operand.name;
      types += (types.empty() ? "" : ", ") + operand.type();
    }
    body += fmt::format("{} = heddle.{} {}{} : ({}) -> {}\n", node.name, operation, names,
                        attributes.empty() ? "" : " {" + attributes + "}", types, node.type());
    nodes.push_back(std::move(node));
  }

  void grow() {
    Node x = below(2) ? nodes.back() : pick(nodes);
    // One that cannot be applied leaves the graph to the next draw.
    for (size_t before = nodes.size(); nodes.size() == before;)
      switch (below(11)) {
      case 0:
        add("unary " + pick<std::string>({"tanh", "neg", "abs", "sigmoid", "relu"}), {x}, "",
            x.shape);
        break;
      case 1:
        combine(x);
        break;
      case 2:
        transpose(x);
        break;
      case 3:
        slice(x);
        break;
      case 4:
        reshape(x);
        break;
      case 5:
        expand(x);
        break;
      case 6:
        concat(x);
        break;
      case 7:
        reduce(x);
        break;
      case 8:
        if (x.rank() > 0)
          add("softmax", {x}, fmt::format("axis = {} : i64", below(x.rank())), x.shape);
        break;
      case 9:
        if (x.rank() > 0 && x.shape.back() != open)
          add("norm " + pick<std::string>({"rms", "layer"}), {x}, "epsilon = 1.0e-01 : f64",
              x.shape);
        break;
      case 10:
        heads(x);
        break;
      }
  }

  /// With another tensor, each dimension of which is the same, or 1 on one side.
  void combine(const Node &x) {
    std::vector<std::pair<Node, Shape>> partners;
    for (const Node &y : nodes) {
      Shape shape(size_t(std::max(x.rank(), y.rank())), 1);
      bool fits = true;
      for (const Node *side : {&x, &y})
        for (int64_t i = 1; i <= side->rank(); ++i) {
          int64_t &into = shape[shape.size() - size_t(i)];
          int64_t size = side->shape[size_t(side->rank() - i)];
          fits &= into == 1 || size == 1 || into == size;
          into = into == 1 ? size : into;
        }
      if (fits && shape.size() <= 4)
        partners.push_back({y, shape});
    }
    const auto &[y, shape] = pick(partners);
    add("binary " + pick<std::string>({"add", "sub", "mul", "max", "min"}), {x, y}, "", shape);
  }

  void transpose(const Node &x) {
    std::vector<int64_t> order(size_t(x.rank()));
    for (size_t i = 0; i < order.size(); ++i)
      order[i] = int64_t(i);
    std::shuffle(order.begin(), order.end(), engine);
    Shape shape;
    for (int64_t axis : order)
      shape.push_back(x.shape[size_t(axis)]);
    if (!order.empty())
      add("transpose", {x}, fmt::format("permutation = array<i64: {}>", fmt::join(order, ", ")),
          shape);
  }

  /// An axis of static size above 1; negative if there is none.
  int64_t staticAxis(const Node &x) {
    std::vector<int64_t> axes;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (x.shape[size_t(i)] > 1)
        axes.push_back(i);
    return axes.empty() ? -1 : pick(axes);
  }

  void slice(const Node &x) {
    int64_t axis = staticAxis(x);
    if (axis < 0)
      return;
    Shape shape = x.shape;
    int64_t &size = shape[size_t(axis)];
    int64_t part = 1 + below(size), start = below(size - part + 1);
    size = part;
    add("slice", {x},
        fmt::format("axis = {} : i64, start = {} : i64, size = {} : i64", axis, start, part),
        shape);
  }

  /// Two neighbours become one, or one becomes two.
  void reshape(const Node &x) {
    Shape shape = x.shape;
    if (below(2) && shape.size() > 1) {
      size_t i = size_t(below(x.rank() - 1));
      // A product with the open dimension would be of another size than it.
      if (shape[i] == open || shape[i + 1] == open)
        return;
      shape[i] *= shape[i + 1];
      shape.erase(shape.begin() + int64_t(i) + 1);
    } else {
      int64_t axis = staticAxis(x);
      if (axis < 0 || shape[size_t(axis)] % 2 || shape.size() > 3)
        return;
      shape[size_t(axis)] /= 2;
      shape.insert(shape.begin() + axis + below(2), 2);
    }
    add("reshape", {x}, fmt::format("shape = array<i64: {}>", fmt::join(shape, ", ")), shape);
  }

  void expand(const Node &x) {
    Shape shape = x.shape, wanted = x.shape;
    for (size_t i = 0; i < shape.size(); ++i) {
      wanted[i] = -1;
      if (shape[i] == 1)
        wanted[i] = shape[i] = 1 + below(5);
    }
    if (shape.size() < 3 && below(2)) {
      int64_t size = 1 + below(4);
      shape.insert(shape.begin(), size);
      wanted.insert(wanted.begin(), size);
    }
    if (shape != x.shape)
      add("expand", {x}, fmt::format("shape = array<i64: {}>", fmt::join(wanted, ", ")), shape);
  }

  void concat(const Node &x) {
    int64_t axis = staticAxis(x);
    if (axis < 0 || x.shape[size_t(axis)] > 40)
      return;
    Shape shape = x.shape;
    shape[size_t(axis)] *= 2;
    add("concat", {x, x}, fmt::format("axis = {} : i64", axis), shape);
  }

  void reduce(const Node &x) {
    if (x.rank() == 0)
      return;
    int64_t axis = below(x.rank());
    Shape shape = x.shape;
    shape[size_t(axis)] = 1;
    add("reduce " + pick<std::string>({"mean", "max", "min"}), {x},
        fmt::format("axis = {} : i64", axis), shape);
  }

  void heads(const Node &x) {
    if (x.rank() == 2 && x.shape[1] != open && x.shape[1] % 4 == 0)
      return add("split_heads", {x}, "heads = 4 : i64", {4, x.shape[0], x.shape[1] / 4});
    if (x.rank() != 3 || x.shape[0] == open || x.shape[2] == open)
      return;
    if (below(2))
      return add("merge_heads", {x}, "", {x.shape[1], x.shape[0] * x.shape[2]});
    if (x.shape[0] < 20)
      add("gather_heads", {x}, fmt::format("heads = {} : i64", 2 * x.shape[0]),
          {2 * x.shape[0], x.shape[1], x.shape[2]});
  }

  std::mt19937 engine;
  std::vector<Node> nodes;
  std::string body;
};

Tensor64 randomTensor(Shape shape, unsigned seed) {
  std::mt19937 engine(seed);
  Tensor64 tensor(std::move(shape));
  for (double &value : tensor.data)
    value = double(int(engine() % 129) - 64) / 32;
  return tensor;
}

class RandomGraph : public testing::TestWithParam<unsigned> {};

TEST_P(RandomGraph, EqualsTheOracle) {
  unsigned seed = GetParam();
  Model model = Generator(seed).model();
  std::vector<Call> calls;
  for (int64_t rows : {1, 5, 37})
    calls.push_back(
        {randomTensor({rows, 24}, 1), randomTensor({3, rows, 8}, 2), randomTensor({24}, 3)});
  auto expected = interpret(model, calls);
  ASSERT_TRUE(expected) << expected.error().message << "\n" << model.text;
  const char *isa = codegen::selectTarget("avx512") && seed % 2 ? "avx512" : "avx2";
  auto found = runNative(model, calls, {.isa = isa, .threads = 2});
  ASSERT_TRUE(found) << found.error().message << "\n" << model.text;
  for (size_t call = 0; call < calls.size(); ++call)
    for (size_t i = 0; i < (*expected)[call].size() && !HasFailure(); ++i)
      expectNear(
          (*found)[call][i], (*expected)[call][i], 2e-5,
          fmt::format("seed {}, {}, call {}, result {}\n{}", seed, isa, call, i, model.text));
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraph, testing::Range(1u, 41u));

} // namespace
} // namespace heddle::test
