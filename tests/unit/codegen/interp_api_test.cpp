// The interpreter as its callers see it: what it refuses and how it says so, the cache between
// calls, the observer.
#include "tests/unit/cases/tiny_model.h"
#include "tests/unit/codegen/run_interpreter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace heddle;
using namespace heddle::test;
using codegen::Interpreter;
using codegen::OpValue;
using runtime::reference::TensorParams;
using testing::HasSubstr;

namespace {

/// A module that lives as long as its interpreter.
struct Loaded {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<Interpreter> interpreter;
};

Loaded load(const Model &model) {
  Loaded loaded;
  auto module = parse(model.text);
  EXPECT_TRUE(module) << module.error().message;
  if (!module)
    return loaded;
  loaded.module = *std::move(module);
  auto made = Interpreter::create(*loaded.module, std::make_shared<TensorParams>(model.params),
                                  {model.slots, model.context});
  EXPECT_TRUE(made) << made.error().message;
  if (made)
    loaded.interpreter.emplace(*std::move(made));
  return loaded;
}

/// The error of making an interpreter for `text`.
Error createError(const std::string &text, codegen::InterpreterOptions options = {}) {
  auto module = parse(text);
  EXPECT_TRUE(module) << module.error().message;
  auto made = Interpreter::create(**module, std::make_shared<TensorParams>(), options);
  return made ? Error{ErrorKind::internal, "accepted"} : made.error();
}

/// The error of a run.
Error runError(const Model &model, const Call &call) {
  auto found = interpret(model, {call});
  return found ? Error{ErrorKind::internal, "accepted"} : found.error();
}

Tensor64 ids(std::vector<double> values) { return heddle::test::vector(std::move(values)); }

//===-- What it refuses
//-------------------------------------------------------------------------===//

TEST(InterpreterCreate, NeedsAFunctionWithOneBlock) {
  EXPECT_THAT(createError("func.func @other() { return }").message,
              HasSubstr("no function 'forward'"));
  EXPECT_THAT(createError("func.func private @forward()").message,
              HasSubstr("no function 'forward'"));
  EXPECT_THAT(createError("func.func @forward(%x: f32) { return }").message,
              HasSubstr("the model takes tensors, sequences and a cache, not f32"));
  std::string cache = "!heddle.cache<1 x 1, 1, 1, f32>";
  EXPECT_THAT(
      createError("func.func @forward(%a: " + cache + ", %b: " + cache + ") { return }").message,
      HasSubstr("two caches"));
}

TEST(InterpreterCreate, RefusesValuesBeyondMemory) {
  auto expand = [](const std::string &size, const std::string &type) {
    return forward("%x: tensor<1xf32>", "tensor<" + type + "xf32>",
                   "%y = heddle.expand %x {shape = array<i64: " + size +
                       ">} : (tensor<1xf32>) -> tensor<" + type + "xf32>",
                   "%y");
  };
  EXPECT_EQ(createError(expand("1000000000000", "1000000000000")).message,
            "expand: a result of [1000000000000] f32 does not fit into memory");
  EXPECT_THAT(createError(expand("4000000000, 4000000000", "4000000000x4000000000")).message,
              HasSubstr("does not fit into memory"));
  EXPECT_EQ(createError(expand("0, 4000000000", "0x4000000000")).message, "accepted");
}

TEST(InterpreterCreate, FindsMissingWeightsBeforeItRuns) {
  Model model = tinyModel({});
  model.params.erase("gate");
  EXPECT_EQ(runError(model, {}).message, "weight 'gate' is missing");
  model = tinyModel({});
  model.params["gate"] = Tensor64({6, 9});
  EXPECT_EQ(runError(model, {}).message,
            "weight 'gate' has shape [6, 9], the model declares [6, 8]");
  EXPECT_EQ(runError(model, {}).kind, ErrorKind::data);
}

TEST(InterpreterRun, ChecksItsArguments) {
  Model model = tinyModel({});
  EXPECT_THAT(runError(model, {ids({1})}).message, HasSubstr("takes 2 arguments, found 1"));
  EXPECT_THAT(runError(model, {Batch::single(1), Batch::single(1)}).message,
              HasSubstr("argument 0 of the model is a tensor"));
  EXPECT_THAT(runError(model, {ids({1}), ids({1})}).message,
              HasSubstr("argument 1 of the model is a description of rows"));
  EXPECT_THAT(runError(model, {Tensor64({1, 1}), Batch::single(1)}).message,
              HasSubstr("argument 0 of the model is [?] i32, found [1, 1]"));
  for (double id : {0.5, 3e9, double(NAN)})
    EXPECT_THAT(runError(model, {ids({1, id}), Batch::single(2)}).message,
                HasSubstr("argument 0 of the model is [?] i32, found the value"));
  Tensor64 torn({3}, {1, 2});
  EXPECT_THAT(runError(model, {torn, Batch::single(3)}).message, HasSubstr("with 2 elements"));
  EXPECT_THAT(runError(model, {ids({1, 2}), Batch::single(3)}).message,
              HasSubstr("argument 1: sequence 0 has rows 0 to 3 of a batch of 2"));
}

TEST(InterpreterRun, NamesTheOperationThatFailed) {
  Model model = tinyModel({});
  Error error = runError(model, {ids({1, 7}), Batch::single(2)});
  EXPECT_EQ(error.message, "embed: id 7 at row 1 is not one of the table's 7 rows");
  EXPECT_EQ(error.kind, ErrorKind::usage);
  error = runError(model, {ids({1}), Batch::single(1, 3)});
  EXPECT_THAT(error.message, HasSubstr("cache_append: sequence 0 goes on at position 3"));
  std::string named = "%y = heddle.binary add %a, %b {heddle.id = \"sum\"} : (tensor<?xf32>, "
                      "tensor<?xf32>) -> tensor<?xf32>";
  Model sum = {forward("%a: tensor<?xf32>, %b: tensor<?xf32>", "tensor<?xf32>", named, "%y")};
  EXPECT_EQ(runError(sum, {ids({1, 2}), ids({1, 2, 3})}).message,
            "binary 'sum': dimensions 2 and 3 do not broadcast");
  // A 1 that is not in the type does not repeat: the compiled code would read beyond it.
  EXPECT_EQ(runError(sum, {ids({1, 2}), ids({1})}).message,
            "binary 'sum': dimensions 2 and 1 do not broadcast");
}

TEST(InterpreterRun, ChecksDimensionsThatTypesLeaveOpen) {
  auto failure = [](const std::string &arguments, const std::string &type, const std::string &body,
                    Call call) {
    return runError({forward(arguments, type, body, "%y")}, call).message;
  };
  EXPECT_THAT(failure("%a: tensor<?x?xf32>, %b: tensor<?x?xf32>", "tensor<?x?xf32>",
                      "%y = heddle.matmul %a, %b : (tensor<?x?xf32>, tensor<?x?xf32>) -> "
                      "tensor<?x?xf32>",
                      {Tensor64({2, 3}), Tensor64({4, 5})}),
              HasSubstr("matmul: inner dimensions differ: [2, 3] and [4, 5]"));
  EXPECT_THAT(failure("%a: tensor<?x1x2xf32>, %b: tensor<?x2x1xf32>", "tensor<?x1x1xf32>",
                      "%y = heddle.matmul %a, %b : (tensor<?x1x2xf32>, tensor<?x2x1xf32>) -> "
                      "tensor<?x1x1xf32>",
                      {Tensor64({2, 1, 2}), Tensor64({3, 2, 1})}),
              HasSubstr("matmul: leading dimensions differ: [2, 1, 2] and [3, 2, 1]"));
  EXPECT_THAT(failure("%x: tensor<1x?x2xf32>, %p: tensor<?xi32>", "tensor<1x?x2xf32>",
                      "%y = heddle.rotate interleaved %x, %p {base = 1.0e+04 : f64} : "
                      "(tensor<1x?x2xf32>, tensor<?xi32>) -> tensor<1x?x2xf32>",
                      {Tensor64({1, 2, 2}), ids({1, 2, 3})}),
              HasSubstr("rotate: 3 positions for 2 rows"));
  EXPECT_THAT(failure("%a: tensor<?x?xf32>, %b: tensor<?x?xf32>", "tensor<?x?xf32>",
                      "%y = heddle.concat %a, %b {axis = 0 : i64} : (tensor<?x?xf32>, "
                      "tensor<?x?xf32>) -> tensor<?x?xf32>",
                      {Tensor64({2, 3}), Tensor64({2, 4})}),
              HasSubstr("concat: [2, 4] does not follow [2, 3] along dimension 0"));
  EXPECT_THAT(failure("%s: tensor<?x?xf32>, %x: tensor<?xf32>, %r: !heddle.sequences",
                      "tensor<?x?xf32>",
                      "%y = heddle.mask %s queries(%r) : (tensor<?x?xf32>, !heddle.sequences) -> "
                      "tensor<?x?xf32>",
                      {Tensor64({2, 3}), Tensor64({3}), Batch::single(3)}),
              HasSubstr("mask: scores [2, 3] meet sequences of 3 rows"));
  EXPECT_THAT(failure("%x: tensor<?x2xf32>, %z: tensor<?xf32>, %r: !heddle.sequences",
                      "tensor<?x2xf32>",
                      "%y = heddle.select_rows %x, %r : (tensor<?x2xf32>, !heddle.sequences) -> "
                      "tensor<?x2xf32>",
                      {Tensor64({2, 2}), Tensor64({3}), Batch::single(3)}),
              HasSubstr("select_rows: 2 rows meet sequences of 3"));
}

TEST(InterpreterRun, ChecksDimensionsOfFusedOperations) {
  std::string open = "tensor<?x?xf32>", heads = "tensor<1x?x2xf32>";
  Model gated = {forward("%x: " + open + ", %g: " + open + ", %u: " + open, open,
                         "%y = heddle.gated_linear %x, %g, %u : (" + open + ", " + open + ", " +
                             open + ") -> " + open +
                             " {\n^bb0(%p: f32, %q: f32):\nheddle.yield %p : f32\n}",
                         "%y")};
  EXPECT_EQ(runError(gated, {Tensor64({1, 2}), Tensor64({2, 3}), Tensor64({2, 4})}).message,
            "gated_linear: gate and up must have one shape, found [2, 3] and [2, 4]");
  Model attention = {forward("%q: " + heads + ", %k: " + heads + ", %v: " + heads, heads,
                             "%y = heddle.attention %q, %k, %v : (" + heads + ", " + heads + ", " +
                                 heads + ") -> " + heads +
                                 " {\n^bb0(%s: f32):\nheddle.yield %s : f32\n}",
                             "%y")};
  EXPECT_EQ(
      runError(attention, {Tensor64({1, 1, 2}), Tensor64({1, 3, 2}), Tensor64({1, 4, 2})}).message,
      "attention: queries [1, 1, 2], keys [1, 3, 2] and values [1, 4, 2] do not meet");
}

TEST(InterpreterRun, RefusesWhatItDoesNotKnow) {
  Model scalar = {forward("%x: tensor<?xf32>", "tensor<?xf32>",
                          "%y = arith.addf %x, %x : tensor<?xf32>", "%y")};
  EXPECT_THAT(runError(scalar, {ids({1})}).message, HasSubstr("does not know 'arith.addf'"));
  Model region = {forward("%x: tensor<?xf32>", "tensor<?xf32>",
                          "%y = heddle.map (%x) : (tensor<?xf32>) -> tensor<?xf32> {\n"
                          "^bb0(%e: f32):\n%a = math.asinh %e : f32\nheddle.yield %a : f32\n}",
                          "%y")};
  EXPECT_THAT(runError(region, {ids({1})}).message,
              HasSubstr("map: 'math.asinh' has no meaning in the region of a fused operation"));
}

//===-- The cache and the observer
//--------------------------------------------------------------===//

TEST(InterpreterCache, LivesFromCallToCallUntilReset) {
  Model model = tinyModel({});
  Loaded loaded = load(model);
  ASSERT_TRUE(loaded.interpreter);
  Interpreter &interpreter = *loaded.interpreter;
  Call first = {ids({1, 2, 3}), Batch::single(3)}, next = {ids({4}), Batch::single(1, 3)};
  ASSERT_TRUE(interpreter.run(first));
  auto step = interpreter.run(next);
  ASSERT_TRUE(step) << step.error().message;
  // Again from the start: the same, to the bit.
  ASSERT_TRUE(interpreter.run(first));
  auto again = interpreter.run(next);
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)[0].data, (*step)[0].data);
  interpreter.reset();
  EXPECT_FALSE(interpreter.run(next));
}

TEST(InterpreterCache, EndsWithTheContext) {
  Model model = tinyModel({});
  model.context = 4;
  auto found =
      interpret(model, {{ids({1, 2, 3, 4}), Batch::single(4)}, {ids({5}), Batch::single(1, 4)}});
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("reaches position 5 of a context of 4"));
}

TEST(InterpreterObserver, SeesTheValueOfEveryOperation) {
  Model model = {forward("%x: tensor<?xf32>", "tensor<?xf32>",
                         "%w = heddle.weight @w : tensor<1xf32>\n"
                         "%a = heddle.binary mul %x, %w {heddle.id = \"scale\"} : (tensor<?xf32>, "
                         "tensor<1xf32>) -> tensor<?xf32>\n"
                         "%y = heddle.unary neg %a : (tensor<?xf32>) -> tensor<?xf32>",
                         "%y", "heddle.param @w : tensor<1xf32>")};
  model.params = {{"w", ids({3})}};
  Loaded loaded = load(model);
  ASSERT_TRUE(loaded.interpreter);
  std::vector<std::string> seen;
  Call call = {ids({1, 2})};
  auto result = loaded.interpreter->run(call, [&](const OpValue &value) {
    seen.push_back(std::string(value.name) + " '" + std::string(value.id) + "' " +
                   std::to_string(value.value.data[1]));
  });
  ASSERT_TRUE(result);
  EXPECT_THAT(seen,
              testing::ElementsAre("heddle.binary 'scale' 6.000000", "heddle.unary '' -6.000000"));
}

TEST(InterpreterWeights, ServeManyUsesAsMatrixAndAsTensor) {
  // The same weight as a table, on both sides of a product, and elementwise.
  Model model = {forward("%ids: tensor<?xi32>", "tensor<2x2xf32>",
                         "%w = heddle.weight @w : tensor<2x2xf32>\n"
                         "%e = heddle.embed %w, %ids : (tensor<2x2xf32>, tensor<?xi32>) -> "
                         "tensor<?x2xf32>\n"
                         "%p = heddle.matmul %w, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
                         "tensor<2x2xf32>\n"
                         "%s = heddle.binary add %p, %w : (tensor<2x2xf32>, tensor<2x2xf32>) -> "
                         "tensor<2x2xf32>\n"
                         "%t = heddle.matmul %s, %w {transpose_rhs} : (tensor<2x2xf32>, "
                         "tensor<2x2xf32>) -> tensor<2x2xf32>\n"
                         "%y = heddle.binary add %t, %e : (tensor<2x2xf32>, tensor<?x2xf32>) -> "
                         "tensor<2x2xf32>",
                         "%y", "heddle.param @w : tensor<2x2xf32>")};
  model.params = {{"w", Tensor64({2, 2}, {1, 2, 3, 4})}};
  // w w + w = (8, 12; 18, 26); times w^T = (32, 72; 70, 158).
  auto found = interpret(model, {{ids({1, 0})}});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ((*found)[0][0].data, (std::vector<double>{35, 76, 71, 160}));
}

} // namespace
