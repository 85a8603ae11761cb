// Kernels against the interpreter on shapes that tiles and vectors do not divide, on every
// instruction set, by both programs and with one thread and two.
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <fmt/format.h>
#include <random>

namespace heddle::test {
namespace {

/// Values that are exact in bf16, between -4 and 4.
Tensor64 randomTensor(Shape shape, unsigned seed) {
  std::mt19937 engine(seed);
  Tensor64 tensor(std::move(shape));
  for (double &value : tensor.data)
    value = double(int(engine() % 129) - 64) / 16;
  return tensor;
}

Tensor64 randomIds(int64_t count, int64_t below, unsigned seed) {
  std::mt19937 engine(seed);
  Tensor64 tensor({count});
  for (double &value : tensor.data)
    value = double(engine() % uint64_t(below));
  return tensor;
}

struct Mode {
  const char *isa;
  bool decode;
  int threads;
};

constexpr Mode modes[] = {{"avx2", false, 2}, {"avx512", false, 1}, {"avx512", true, 2}};

/// Runs the calls natively in every mode and compares with the interpreter.
void compare(const Model &model, const std::vector<Call> &calls, double tolerance = 2e-6) {
  Result<std::vector<Tensors>> expected = interpret(model, calls);
  ASSERT_TRUE(expected) << expected.error().message << "\n" << model.text;
  for (Mode mode : modes) {
    if (!codegen::selectTarget(mode.isa))
      continue;
    JitOptions options{.isa = mode.isa, .threads = mode.threads, .decode = mode.decode};
    auto found = runNative(model, calls, options);
    ASSERT_TRUE(found) << found.error().message << "\n" << model.text;
    for (size_t call = 0; call < calls.size(); ++call)
      for (size_t i = 0; i < (*expected)[call].size(); ++i)
        expectNear((*found)[call][i], (*expected)[call][i], tolerance,
                   fmt::format("{} on {}, call {}, result {}", model.text, mode.isa, call, i));
  }
}

std::string tensorType(const std::string &shape, const std::string &element = "f32") {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + element + ">";
}

/// One operation on one tensor of `from`: compares for each shape of the data.
void compareUnary(const std::string &operation, const std::string &attributes,
                  const std::string &from, const std::string &to, std::vector<Shape> shapes,
                  const std::string &element = "f32") {
  Model model;
  model.text = forward("%x: " + tensorType(from, element), tensorType(to, element),
                       "%y = heddle." + operation + " %x" + attributes + " : (" +
                           tensorType(from, element) + ") -> " + tensorType(to, element),
                       "%y");
  std::vector<Call> calls;
  for (Shape &shape : shapes)
    calls.push_back({randomTensor(shape, unsigned(calls.size() + 1))});
  compare(model, calls);
}

//===-- Norms, softmax, reductions
//--------------------------------------------------------------===//

TEST(Norm, OfRowsOfAnyWidth) {
  for (int64_t width : {1, 7, 16, 33, 172, 768})
    for (bool rms : {true, false}) {
      bool bf16 = width % 2;
      std::string type = tensorType(fmt::format("?x{}", width));
      std::string weight = tensorType(fmt::format("{}", width), bf16 ? "bf16" : "f32");
      Model model;
      model.text = forward(
          "%x: " + type, type,
          fmt::format("%w = heddle.weight @w : {0}\n%b = heddle.weight @b : {0}\n"
                      "%y = heddle.norm {1} %x weight(%w) {2} {{epsilon = 1.0e-05 : f64}} : "
                      "({3}, {0}{4}) -> {3}",
                      weight, rms ? "rms" : "layer", rms ? "" : "bias(%b)", type,
                      rms ? "" : ", " + weight),
          "%y", fmt::format("heddle.param @w : {0}\nheddle.param @b : {0}", weight));
      model.params = {{"w", randomTensor({width}, 5)}, {"b", randomTensor({width}, 6)}};
      compare(model, {{randomTensor({0, width}, 1)},
                      {randomTensor({1, width}, 2)},
                      {randomTensor({37, width}, 3)}});
    }
}

TEST(Norm, KeepsTheVarianceOfLargeNumbers) {
  Tensor64 x({2, 40});
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = 40000 + double(i % 40);
  for (double &value : std::span(x.data).subspan(40))
    value = 1e6;
  std::string type = tensorType("?x40");
  Model model;
  model.text = forward(
      "%x: " + type, type,
      "%y = heddle.norm layer %x {epsilon = 1.0e-05 : f64} : (" + type + ") -> " + type, "%y");
  compare(model, {{x}}, 1e-5);
}

TEST(Norm, OfMoreDimensions) {
  compareUnary("norm layer", " {epsilon = 1.0e-05 : f64}", "3x?x20", "3x?x20",
               {{3, 0, 20}, {3, 9, 20}});
  compareUnary("norm rms", " {epsilon = 1.0e-05 : f64}", "20", "20", {{20}});
}

TEST(Softmax, AlongAnyDimension) {
  std::vector<Shape> shapes = {{3, 1, 1}, {3, 5, 16}, {3, 2, 100}, {3, 0, 4}, {3, 4, 0}};
  for (int axis : {0, 1, 2})
    compareUnary("softmax", fmt::format(" {{axis = {} : i64}}", axis), "3x?x?", "3x?x?", shapes);
  compareUnary("softmax", "", "?", "?", {{0}, {1}, {15}, {16}, {1000}});
}

TEST(Reduce, AlongAnyDimension) {
  std::vector<Shape> shapes = {{1, 5, 1}, {4, 5, 16}, {3, 5, 100}, {0, 5, 4}, {3, 5, 0}};
  const char *results[] = {"1x5x?", "?x1x?", "?x5x1"};
  for (const char *kind : {"sum", "mean", "max", "min"})
    for (int axis : {0, 1, 2})
      compareUnary(std::string("reduce ") + kind, fmt::format(" {{axis = {} : i64}}", axis),
                   "?x5x?", results[axis], shapes);
  compareUnary("reduce sum", " {axis = 0 : i64}", "?", "1", {{0}, {1}, {77}});
}

//===-- Elementwise
//-----------------------------------------------------------------------------===//

TEST(Map, Broadcasts) {
  struct Shapes {
    const char *lhs, *rhs, *result;
    Shape left, right;
  };
  for (const Shapes &s :
       {Shapes{"?x64", "64", "?x64", {5, 64}, {64}},
        Shapes{"?x172", "?x1", "?x172", {3, 172}, {3, 1}},
        Shapes{"2x?x8", "?x8", "2x?x8", {2, 7, 8}, {7, 8}},
        Shapes{"2x?x1", "2x1x33", "2x?x33", {2, 4, 1}, {2, 1, 33}},
        Shapes{"?x?", "", "?x?", {70, 131}, {}}, Shapes{"1x?", "?x1", "?x?", {1, 9}, {6, 1}},
        Shapes{"3x1x5", "1x4x1", "3x4x5", {3, 1, 5}, {1, 4, 1}},
        Shapes{"1x1", "1", "1x1", {1, 1}, {1}}, Shapes{"", "", "", {}, {}},
        Shapes{"?x7", "?x7", "?x7", {0, 7}, {0, 7}}}) {
    Model model;
    std::string a = tensorType(s.lhs), b = tensorType(s.rhs), c = tensorType(s.result);
    model.text = forward("%a: " + a + ", %b: " + b, c,
                         "%y = heddle.binary sub %a, %b : (" + a + ", " + b + ") -> " + c, "%y");
    compare(model, {{randomTensor(s.left, 1), randomTensor(s.right, 2)}});
  }
}

TEST(Map, ReadsViews) {
  // A slice and a transposition of heads are views; the result of the comparison is of bytes.
  Model model;
  model.text = forward("%x: tensor<?x24xf32>, %h: tensor<3x?x4xf32>", "tensor<3x?x4xi1>", R"(
    %s = heddle.slice %x {axis = 1 : i64, start = 5 : i64, size = 12 : i64} : (tensor<?x24xf32>) -> tensor<?x12xf32>
    %p = heddle.split_heads %s {heads = 3 : i64} : (tensor<?x12xf32>) -> tensor<3x?x4xf32>
    %y = heddle.binary less %p, %h : (tensor<3x?x4xf32>, tensor<3x?x4xf32>) -> tensor<3x?x4xi1>)",
                       "%y");
  compare(model, {{randomTensor({9, 24}, 1), randomTensor({3, 9, 4}, 2)}});
}

//===-- Copies
//----------------------------------------------------------------------------------===//

TEST(Copy, TransposesAnyOrder) {
  for (const char *order : {"0, 2, 1", "2, 0, 1", "2, 1, 0", "1, 2, 0"}) {
    std::string dims[] = {"3", "?", "20"}, to;
    for (char c : std::string(order))
      if (c >= '0' && c <= '2')
        to += (to.empty() ? "" : "x") + dims[c - '0'];
    compareUnary("transpose", fmt::format(" {{permutation = array<i64: {}>}}", order), "3x?x20", to,
                 {{3, 0, 20}, {3, 1, 20}, {3, 70, 20}});
  }
}

TEST(Copy, FlattensViews) {
  Model model;
  model.text = forward("%x: tensor<?x24xf32>", "tensor<?x12xf32>, tensor<?xf32>", R"(
    %s = heddle.slice %x {axis = 1 : i64, start = 3 : i64, size = 12 : i64} : (tensor<?x24xf32>) -> tensor<?x12xf32>
    %p = heddle.split_heads %s {heads = 3 : i64} : (tensor<?x12xf32>) -> tensor<3x?x4xf32>
    %c = heddle.concat %p, %p {axis = 0 : i64} : (tensor<3x?x4xf32>, tensor<3x?x4xf32>) -> tensor<6x?x4xf32>
    %q = heddle.slice %c {axis = 0 : i64, start = 2 : i64, size = 3 : i64} : (tensor<6x?x4xf32>) -> tensor<3x?x4xf32>
    %m = heddle.merge_heads %q : (tensor<3x?x4xf32>) -> tensor<?x12xf32>
    %r = heddle.reshape %p {shape = array<i64: -1>} : (tensor<3x?x4xf32>) -> tensor<?xf32>)",
                       "%m, %r");
  compare(model, {{randomTensor({0, 24}, 1)}, {randomTensor({21, 24}, 2)}});
}

TEST(Copy, ConcatenatesAlongAnyDimension) {
  for (int axis : {0, 1, 2}) {
    const char *to[] = {"?x6x5", "?x12x5", "?x6x10"};
    Model model;
    std::string type = tensorType("?x6x5"), result = tensorType(to[axis]);
    model.text = forward("%a: " + type + ", %b: " + type, result,
                         fmt::format("%y = heddle.concat %a, %b {{axis = {0} : i64}} : ({1}, {1}) "
                                     "-> {2}",
                                     axis, type, result),
                         "%y");
    compare(model, {{randomTensor({4, 6, 5}, 1), randomTensor({4, 6, 5}, 2)}});
  }
}

TEST(Copy, GathersHeads) {
  compareUnary("gather_heads", " {heads = 6 : i64}", "2x?x20", "6x?x20", {{2, 0, 20}, {2, 33, 20}});
}

//===-- Rows
//------------------------------------------------------------------------------------===//

TEST(Rows, EmbedsAndSelects) {
  for (const char *element : {"f32", "bf16"})
    for (int64_t width : {5, 64}) {
      Model model;
      std::string table = tensorType(fmt::format("50x{}", width), element);
      std::string rows = tensorType(fmt::format("?x{}", width));
      model.text = forward(
          "%ids: tensor<?xi32>, %rows: !heddle.sequences", rows + ", tensor<?xi32>",
          fmt::format("%w = heddle.weight @w : {0}\n"
                      "%x = heddle.embed %w, %ids : ({0}, tensor<?xi32>) -> {1}\n"
                      "%y = heddle.select_rows %x, %rows : ({1}, !heddle.sequences) -> {1}\n"
                      "%p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>",
                      table, rows),
          "%y, %p", "heddle.param @w : " + table);
      model.params = {{"w", randomTensor({50, width}, 3)}};
      Batch batch{{{0, 70, 5, 0}, {70, 1, 9, 1}, {71, 29, 0, 2}}, {}};
      compare(model, {{randomIds(100, 50, 1), Batch(batch).withLastRows()},
                      {randomIds(100, 50, 2), Batch(batch).withAllRows()}});
    }
}

//===-- Positions and masks
//---------------------------------------------------------------------===//

TEST(Rotate, TurnsAnyWidthOfHead) {
  struct Case {
    int64_t width;
    std::string pairing, attributes;
  };
  for (const Case &c : {Case{2, "interleaved", "base = 1.0e+04 : f64"},
                        Case{8, "interleaved", "base = 1.0e+04 : f64"},
                        Case{64, "interleaved", "base = 5.0e+05 : f64"},
                        Case{80, "half_split", "base = 1.0e+04 : f64, dims = 32 : i64"},
                        Case{34, "half_split", "base = 1.0e+04 : f64, magnitude = 1.25 : f64"},
                        Case{23, "interleaved", "base = 1.0e+04 : f64, dims = 18 : i64"},
                        Case{128, "half_split", "base = 1.0e+06 : f64"}}) {
    int64_t heads = 3;
    std::string rows = tensorType(fmt::format("?x{}", heads * c.width));
    std::string split = tensorType(fmt::format("{}x?x{}", heads, c.width));
    Model model;
    model.text =
        forward("%x: " + rows + ", %p: tensor<?xi32>", rows,
                fmt::format("%h = heddle.split_heads %x {{heads = {0} : i64}} : ({1}) -> {2}\n"
                            "%r = heddle.rotate {3} %h, %p {{{4}}} : ({2}, tensor<?xi32>) -> {2}\n"
                            "%m = heddle.merge_heads %r : ({2}) -> {1}",
                            heads, rows, split, c.pairing, c.attributes),
                "%m");
    compare(model, {{randomTensor({41, heads * c.width}, 1), randomIds(41, 1000001, 2)},
                    {randomTensor({0, heads * c.width}, 1), randomIds(0, 1, 2)}});
  }
}

TEST(Rotate, TakesFrequencies) {
  Model model;
  model.text = forward("%x: tensor<2x?x22xf32>, %p: tensor<?xi32>", "tensor<2x?x22xf32>", R"(
    %f = heddle.constant dense<[1.0, 0.5, 0.25, 0.125, 0.3, 0.01, 0.002, 1.0e-05, 0.7, 0.6]> : tensor<10xf64>
    %r = heddle.rotate half_split %x, %p frequencies(%f) {dims = 20 : i64} : (tensor<2x?x22xf32>, tensor<?xi32>, tensor<10xf64>) -> tensor<2x?x22xf32>)",
                       "%r");
  compare(model, {{randomTensor({2, 7, 22}, 1), randomIds(7, 1000001, 2)}});
}

TEST(Mask, HidesWhatIsNotSeen) {
  Batch batch{{{0, 20, 3, 0}, {20, 1, 40, 1}, {21, 20, 0, 2}}, {}};
  for (const char *attributes :
       {"", "{causal}", "{window = 4 : i64}", "{causal, window = 7 : i64}",
        "{causal, prefix = 6 : i64}", "{causal, prefix = 6 : i64, window = 9 : i64}"}) {
    Model model;
    std::string type = "tensor<2x?x?xf32>";
    model.text =
        forward("%ids: tensor<?xi32>, %rows: !heddle.sequences, %x: " + type + ", %y: " + type,
                type + ", " + type,
                fmt::format("%a = heddle.mask %x queries(%rows) keys(%rows) {0} : ({1}, "
                            "!heddle.sequences, !heddle.sequences) -> {1}\n"
                            "%b = heddle.mask %y {0} : ({1}) -> {1}",
                            attributes, type),
                "%a, %b");
    compare(model, {{randomIds(41, 9, 1), batch, randomTensor({2, 41, 41}, 2),
                     randomTensor({2, 5, 19}, 3)}});
  }
}

TEST(Mask, TakesTensors) {
  Model model;
  model.text = forward("%x: tensor<2x?x?xf32>, %m: tensor<?x?xi1>", "tensor<2x?x?xf32>", R"(
    %y = heddle.mask %x mask(%m) {causal} : (tensor<2x?x?xf32>, tensor<?x?xi1>) -> tensor<2x?x?xf32>)",
                       "%y");
  compare(model,
          {{randomTensor({2, 19, 37}, 1), Tensor64({19, 37}, randomIds(19 * 37, 2, 2).data)}});
}

//===-- The cache
//-------------------------------------------------------------------------------===//

TEST(CacheAppend, KeepsAndGathersSequences) {
  for (const char *element : {"f32", "bf16"})
    for (auto [width, valueWidth] :
         {std::pair<int64_t, int64_t>{1, 1}, {5, 3}, {16, 16}, {33, 40}}) {
      int64_t heads = 2;
      std::string keys = tensorType(fmt::format("{}x?x{}", heads, width));
      std::string values = tensorType(fmt::format("{}x?x{}", heads, valueWidth));
      std::string allKeys = tensorType(fmt::format("{}x?x{}", heads, width), element);
      std::string allValues = tensorType(fmt::format("{}x?x{}", heads, valueWidth), element);
      std::string cache =
          fmt::format("!heddle.cache<2 x {}, {}, {}, {}>", heads, width, valueWidth, element);
      Model model;
      model.slots = 3;
      model.context = 100;
      model.text = forward(
          fmt::format("%k: {}, %v: {}, %ids: tensor<?xi32>, %rows: !heddle.sequences, %c: {}", keys,
                      values, cache),
          fmt::format("{}, {}, tensor<?xi32>, {}", allKeys, allValues, cache),
          fmt::format("%c1, %k1, %v1, %r1 = heddle.cache_append %c, %v2k, %v, %rows {{layer = 0 : "
                      "i64}} : ({0}, {1}, {2}, !heddle.sequences) -> ({0}, {3}, {4}, "
                      "!heddle.sequences)\n"
                      "%c2, %k2, %v2, %r2 = heddle.cache_append %c1, %k, %v, %rows {{layer = 1 : "
                      "i64}} : ({0}, {1}, {2}, !heddle.sequences) -> ({0}, {3}, {4}, "
                      "!heddle.sequences)\n"
                      "%p = heddle.positions %r2 : (!heddle.sequences) -> tensor<?xi32>",
                      cache, keys, values, allKeys, allValues),
          "%k2, %v2, %p, %c2");
      model.text.replace(model.text.find("%v2k"), 4, "%k");
      auto call = [&](std::vector<runtime::Sequence> sequences, int64_t tokens, unsigned seed) {
        return Call{randomTensor({heads, tokens, width}, seed),
                    randomTensor({heads, tokens, valueWidth}, seed + 1), randomIds(tokens, 5, 1),
                    Batch{std::move(sequences), {}}};
      };
      compare(model, {call({{0, 20, 0, 0}, {20, 1, 0, 2}}, 21, 1),
                      call({{0, 1, 20, 0}, {1, 33, 0, 1}, {34, 1, 1, 2}}, 35, 2),
                      call({{0, 1, 21, 0}}, 1, 3), call({{0, 45, 33, 1}}, 45, 4),
                      call({{0, 48, 0, 2}, {48, 16, 16, 0}}, 64, 5)});
    }
}

} // namespace
} // namespace heddle::test
