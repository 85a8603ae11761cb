// Whole small graphs as native code: what one operation's choice of layout or buffer does to the
// others, and dimensions that only a run can compare.
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"

#include <gtest/gtest.h>

namespace heddle::test {
namespace {

/// 0, 1, 2, ... over the shape, scaled to small numbers.
Tensor64 counting(Shape shape) {
  Tensor64 tensor(std::move(shape));
  double next = 0;
  for (double &value : tensor.data)
    value = next++ / 16 - 1;
  return tensor;
}

void compare(const Model &model, const std::vector<Call> &calls) {
  Result<std::vector<Tensors>> expected = interpret(model, calls);
  ASSERT_TRUE(expected) << expected.error().message;
  auto found = runNative(model, calls, {});
  ASSERT_TRUE(found) << found.error().message;
  for (size_t call = 0; call < calls.size(); ++call)
    for (size_t i = 0; i < (*expected)[call].size(); ++i)
      expectNear((*found)[call][i], (*expected)[call][i], 2e-5,
                 "call " + std::to_string(call) + ", result " + std::to_string(i));
}

/// The error of a run with these arguments.
std::string refusal(const Model &model, const Call &call) {
  auto found = runNative(model, {call}, {});
  EXPECT_FALSE(found);
  return found ? "" : found.error().message;
}

TEST(Graphs, ReturnHeadsInTheirOwnOrder) {
  Model model;
  model.text = forward(
      "%x: tensor<?x16xf32>, %p: tensor<?xi32>", "tensor<2x?x8xf32>",
      "%h = heddle.split_heads %x {heads = 2 : i64} : (tensor<?x16xf32>) -> tensor<2x?x8xf32>\n"
      "%r = heddle.rotate interleaved %h, %p {base = 1.0e+04 : f64} : (tensor<2x?x8xf32>, "
      "tensor<?xi32>) -> tensor<2x?x8xf32>",
      "%r");
  compare(model, {{counting({3, 16}), vector({0, 1, 2})}});
}

TEST(Graphs, ReturnHeadsThatAreMergedToo) {
  Model model;
  model.text = forward(
      "%a: tensor<2x?x4xf32>, %b: tensor<2x4x8xf32>", "tensor<2x?x8xf32>, tensor<?x16xf32>",
      "%m = heddle.matmul %a, %b : (tensor<2x?x4xf32>, tensor<2x4x8xf32>) -> tensor<2x?x8xf32>\n"
      "%g = heddle.merge_heads %m : (tensor<2x?x8xf32>) -> tensor<?x16xf32>",
      "%m, %g");
  compare(model, {{counting({2, 3, 4}), counting({2, 4, 8})}});
}

TEST(Graphs, ReturnTheCacheBetweenTensors) {
  Model model;
  std::string cache = "!heddle.cache<1 x 1, 4, 4, f32>";
  model.text = forward(
      "%k: tensor<1x?x4xf32>, %ids: tensor<?xi32>, %rows: !heddle.sequences, %cache: " + cache,
      "tensor<1x?x4xf32>, " + cache + ", tensor<1x?x4xf32>",
      "%c, %ks, %vs, %kr = heddle.cache_append %cache, %k, %k, %rows {layer = 0 : i64} : (" +
          cache + ", tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences) -> (" + cache +
          ", tensor<1x?x4xf32>, tensor<1x?x4xf32>, !heddle.sequences)\n"
          "%n = heddle.unary neg %k : (tensor<1x?x4xf32>) -> tensor<1x?x4xf32>",
      "%ks, %c, %n");
  Batch batch;
  batch.sequences = {{0, 3, 0, 0}};
  compare(model, {{counting({1, 3, 4}), Tensor64({3}), batch}});
}

TEST(Graphs, RefuseToConcatenateRowsOfDifferentNumber) {
  Model model;
  model.text = forward("%a: tensor<?x8xf32>, %b: tensor<?x8xf32>", "tensor<?x16xf32>",
                       "%y = heddle.concat %a, %b {axis = 1 : i64} : (tensor<?x8xf32>, "
                       "tensor<?x8xf32>) -> tensor<?x16xf32>",
                       "%y");
  compare(model, {{counting({3, 8}), counting({3, 8})}});
  EXPECT_NE(refusal(model, {counting({3, 8}), counting({5, 8})}), "");
}

TEST(Graphs, RefuseExtrasOfOtherRows) {
  Model model;
  model.text = forward(
      "%x: tensor<?x8xf32>, %r: tensor<?x4xf32>", "tensor<?x4xf32>",
      "%w = heddle.weight @w : tensor<8x4xf32>\n"
      "%y = heddle.linear %x, %w (%r) : (tensor<?x8xf32>, tensor<8x4xf32>, tensor<?x4xf32>) -> "
      "tensor<?x4xf32> {\n^bb0(%p: f32, %e: f32):\n%s = arith.addf %p, %e : f32\n"
      "heddle.yield %s : f32\n}",
      "%y", "heddle.param @w : tensor<8x4xf32>");
  model.params = {{"w", counting({8, 4})}};
  compare(model, {{counting({3, 8}), counting({3, 4})}});
  EXPECT_NE(refusal(model, {counting({3, 8}), counting({2, 4})}), "");
}

TEST(Graphs, RefuseAMaskOfOtherRows) {
  Model model;
  model.text = forward("%s: tensor<2x?x?xf32>, %m: tensor<?x?xi1>", "tensor<2x?x?xf32>",
                       "%y = heddle.mask %s mask(%m) : (tensor<2x?x?xf32>, tensor<?x?xi1>) -> "
                       "tensor<2x?x?xf32>",
                       "%y");
  Tensor64 mask({2, 3});
  mask.data = {1, 0, 1, 0, 1, 1};
  compare(model, {{counting({2, 2, 3}), mask}});
  EXPECT_NE(refusal(model, {counting({2, 4, 3}), mask}), "");
}

TEST(Graphs, MultiplyBf16ByF32) {
  Model model;
  model.text = forward("%a: tensor<?x4xbf16>, %b: tensor<4x8xf32>", "tensor<?x8xf32>",
                       "%y = heddle.matmul %a, %b : (tensor<?x4xbf16>, tensor<4x8xf32>) -> "
                       "tensor<?x8xf32>",
                       "%y");
  compare(model, {{counting({3, 4}), counting({4, 8})}});
}

TEST(Graphs, MultiplyBf16ByAnF32Weight) {
  Model model;
  model.text = forward("%a: tensor<?x4xbf16>", "tensor<?x8xf32>",
                       "%w = heddle.weight @w : tensor<4x8xf32>\n"
                       "%y = heddle.matmul %a, %w : (tensor<?x4xbf16>, tensor<4x8xf32>) -> "
                       "tensor<?x8xf32>",
                       "%y", "heddle.param @w : tensor<4x8xf32>");
  model.params = {{"w", counting({4, 8})}};
  compare(model, {{counting({3, 4})}});
}

TEST(Graphs, MultiplyByAWeightOfADepthOnlyTheRunKnows) {
  Model model;
  model.text = forward("%a: tensor<?x?xf32>", "tensor<?x8xf32>",
                       "%w = heddle.weight @w : tensor<4x8xf32>\n"
                       "%y = heddle.matmul %a, %w : (tensor<?x?xf32>, tensor<4x8xf32>) -> "
                       "tensor<?x8xf32>",
                       "%y", "heddle.param @w : tensor<4x8xf32>");
  model.params = {{"w", counting({4, 8})}};
  compare(model, {{counting({3, 4})}});
  EXPECT_NE(refusal(model, {counting({3, 5})}), "");
}

/// A cache of one layer whose keys are changed before `attention` reads them.
TEST(Graphs, AttendToKeysThatWereChangedAfterTheCache) {
  Model model;
  model.text = forward(
      "%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>, %ids: tensor<?xi32>, "
      "%rows: !heddle.sequences, %cache: !heddle.cache<1 x 2, 8, 8, f32>",
      "tensor<2x?x8xf32>, !heddle.cache<1 x 2, 8, 8, f32>",
      "%c, %ks, %vs, %kr = heddle.cache_append %cache, %k, %v, %rows {layer = 0 : i64} : "
      "(!heddle.cache<1 x 2, 8, 8, f32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, !heddle.sequences) "
      "-> (!heddle.cache<1 x 2, 8, 8, f32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, "
      "!heddle.sequences)\n"
      "%n = heddle.unary neg %ks : (tensor<2x?x8xf32>) -> tensor<2x?x8xf32>\n"
      "%o = heddle.attention %q, %n, %vs queries(%rows) keys(%kr) {masked, causal} : "
      "(tensor<2x?x8xf32>, tensor<2x?x8xf32>, tensor<2x?x8xf32>, !heddle.sequences, "
      "!heddle.sequences) -> tensor<2x?x8xf32> {\n^bb0(%s: f32):\nheddle.yield %s : f32\n}",
      "%o, %c");
  model.slots = 2;
  auto call = [](int32_t rows, std::vector<runtime::Sequence> sequences) {
    Batch batch;
    batch.sequences = std::move(sequences);
    Tensor64 ids({rows});
    return Call{counting({2, rows, 8}), counting({2, rows, 8}), counting({2, rows, 8}), ids, batch};
  };
  compare(model, {call(5, {{0, 3, 0, 0}, {3, 2, 0, 1}}), call(2, {{0, 1, 3, 0}, {1, 1, 2, 1}})});
}

} // namespace
} // namespace heddle::test
