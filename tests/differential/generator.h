// How random programs are made: statement by statement, from what there is so far.
#pragma once

#include "tests/differential/random_program.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heddle::test {

// Sizes that only a call decides, as they stand in shapes.
inline constexpr int64_t tokens = -1; ///< rows of the batch
inline constexpr int64_t keys = -2;   ///< rows of the cache's view
inline constexpr int64_t other = -3;  ///< rows of an input of its own

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
std::optional<Shape> broadcast(const Shape &a, const Shape &b);

class Generator {
public:
  explicit Generator(uint32_t seed) : engine(seed) {}
  RandomProgram run();

private:
  //===-- Chance ----------------------------------------------------------------------------===//

  int64_t below(int64_t bound) { return int64_t(engine() % uint64_t(bound)); }
  bool chance(int64_t percent) { return below(100) < percent; }
  template <class T>
  const T &oneOf(const std::vector<T> &list) {
    return list[size_t(below(int64_t(list.size())))];
  }
  int64_t size();
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
  const Node *pickFloat(int64_t lowest = 0, int64_t highest = 4);

  //===-- Text ------------------------------------------------------------------------------===//

  void add(const Node &node, std::vector<std::string> &types, std::vector<std::string> &results);
  /// Notes that `names` are read and returns their types.
  std::string typesOf(const std::vector<Node> &operands);
  /// `%n = heddle.<text> : (types) -> type`, with `extra` after the types of the operands.
  Node emit(const std::string &text, const std::vector<Node> &operands, Shape shape,
            const std::string &element = "f32", const std::string &extra = "");
  void keep(Node node) { nodes.push_back(std::move(node)); }
  Node constant(const std::string &dense, Shape shape, const std::string &element = "f32");
  Node weight(Shape shape, const std::string &element = "f32");

  //===-- Arguments -------------------------------------------------------------------------===//

  struct Argument {
    Node node;
    int64_t limit = 0; ///< of integers
  };
  void addArgument(const Node &node, int64_t limit = 0);
  void addArguments();
  void addCache();
  Tensor64 numbers(Shape shape);
  int64_t resolve(int64_t dim, int64_t rows, int64_t view, int64_t own) const {
    return dim == tokens ? rows : dim == keys ? view : dim == other ? own : dim;
  }
  std::vector<Call> makeCalls();

  //===-- Statements ------------------------------------------------------------------------===//

  void grow();
  Node unaryOf(const Node &x);
  void unary();
  /// A node that broadcasts with `x` and fits the same type; or a constant.
  Node partnerOf(const Node &x);
  Node binaryOf(const std::string &kind, const Node &x, const Node &y, const char *element = "");
  void binary();
  void choose();
  void compare();
  void round();
  Node positionsOf(bool ofKeys = false);
  void integers();

  //===-- Products --------------------------------------------------------------------------===//

  std::string blocks();
  void multiplyByWeight();
  /// Of two nodes.
  void multiply();
  void gate();
  void norm();
  void reduce();
  void softmax();
  void lookUp();
  void selectRows();

  //===-- Experts ---------------------------------------------------------------------------===//

  /// What each row chose: `[rows, count]` ids below `experts`, and their weights.
  struct Choice {
    Node ids, weights;
    int64_t experts = 0, count = 0;
  };
  /// The largest entries of a row and where they stand.
  std::pair<Node, Node> topOf(const Node &x, int64_t count);
  void largest();
  Choice chosenBy(const Node &x);
  Choice given();
  Node byExperts(const Node &x, const Choice &choice, int64_t n, const char *element);
  /// A mixture of experts, written in any of its ways.
  void experts();

  //===-- Shapes ----------------------------------------------------------------------------===//

  void transpose();
  /// Two neighbours become one, or one becomes two.
  void reshape();
  void expand();
  void concat();
  void slice();
  void heads();
  Node splitHeads(const Node &x, int64_t count);
  Node gathered(const Node &x, int64_t heads);
  Node rotated(const Node &x, bool interleaved, bool allDims);

  //===-- Attention -------------------------------------------------------------------------===//

  /// Queries, keys and values `[.., heads, rows, width]`, and what describes their rows.
  struct Sides {
    Node q, k, v;
    bool hasQueries = false;
    std::string keysAre; ///< the sequences of the keys, or nothing
  };
  Node product(const Node &x, int64_t n) { return product(x, n, chance(25) ? "bf16" : "f32"); }
  Node product(const Node &x, int64_t n, const char *element);
  Sides cachedSides(const Node &x);
  /// Of two tensors of rows; the same one, or another of other rows.
  Sides tensorSides(const Node &x);
  Node maskOf(const Node &scores, const Sides &sides, std::vector<Node> segments);
  Node columnOf(const Node &numbers, bool isRow);
  Node chainOf(Node s, const Sides &sides);
  /// Emits k - q and returns its name; the node is `lastNode`.
  std::string binaryAndName(const Node &k, const Node &q);
  /// Heads `[batch, heads, rows, width]` of `[batch, rows, ..]`.
  Node batchedHeads(const Node &x, int64_t heads, int64_t width);
  /// With an explicit batch, and rows that nothing describes.
  void batchedAttention();
  void attention();
  /// Numbers of queries and of keys, or none.
  std::vector<Node> segmentsOf(const Sides &sides);

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

} // namespace heddle::test
