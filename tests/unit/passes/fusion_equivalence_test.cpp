// Fusion changes no value: every subset of the fusions, in any order, gives what the unfused graph
// gives, in fp64.
#include "tests/unit/cases/tiny_model.h"
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/passes/random_graph.h"

#include "passes/pipeline.h"
#include "passes/remarks.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>

using namespace heddle;
using namespace heddle::test;
using llvm::StringRef;

namespace {

using Order = std::vector<StringRef>;

/// The text of `text` after the fusions in `order`; the current test fails where a pass does.
std::string fused(const std::string &text, const Order &order) {
  auto module = parse(text);
  if (!module) {
    ADD_FAILURE() << module.error().message << "\n" << text;
    return text;
  }
  mlir::PassManager manager(&context());
  passes::buildFusePipeline(manager, llvm::ArrayRef(order));
  EXPECT_TRUE(mlir::succeeded(manager.run(**module))) << text;
  std::string out;
  llvm::raw_string_ostream stream(out);
  (*module)->print(stream);
  return out;
}

std::vector<Tensors> run(const Model &model, const std::vector<Call> &calls) {
  auto found = interpret(model, calls);
  if (found)
    return *found;
  ADD_FAILURE() << found.error().message << "\n" << model.text;
  return {};
}

/// Where the unfused graph gives NaN anything will do: its product with the values lets the NaN of
/// a hidden key through (0 * NaN), attention does not.
void forgiveNaN(Tensor64 &found, const Tensor64 &expected) {
  for (size_t i = 0; i < std::min(found.data.size(), expected.data.size()); ++i)
    if (std::isnan(expected.data[i]))
      found.data[i] = expected.data[i];
}

/// Checks `model` after the fusions in `order` against `expected`, what it gives as it is.
void expectSame(Model model, const std::vector<Call> &calls, const std::vector<Tensors> &expected,
                const Order &order, double tolerance) {
  std::string original = model.text;
  model.text = fused(original, order);
  std::vector<Tensors> found = run(model, calls);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].size(), expected[i].size());
    for (size_t j = 0; j < found[i].size(); ++j) {
      forgiveNaN(found[i][j], expected[i][j]);
      expectNear(found[i][j], expected[i][j], tolerance, fmt::format("result {} of call {}", j, i));
    }
  }
  if (testing::Test::HasFailure())
    FAIL() << "after "
           << fmt::format("{}",
                          fmt::join(std::vector<std::string>(order.begin(), order.end()), ", "))
           << "\n"
           << original << "\n"
           << model.text;
}

std::vector<StringRef> allFusions() {
  auto names = passes::FusionSet::all().names();
  return {names.begin(), names.end()};
}

/// Those that find something to do where no weight is quantised.
std::vector<StringRef> floatFusions() {
  std::vector<StringRef> names = allFusions();
  std::erase(names, "fuse-quantise");
  return names;
}

/// Every subset, in the order of the pipeline.
std::vector<Order> subsets() {
  std::vector<StringRef> all = floatFusions();
  std::vector<Order> result;
  for (unsigned bits = 0; bits < 1u << all.size(); ++bits) {
    Order order;
    for (size_t i = 0; i < all.size(); ++i)
      if (bits >> i & 1)
        order.push_back(all[i]);
    result.push_back(order);
  }
  return result;
}

/// All of them in a random order; with `shorten` some of them.
Order randomOrder(std::mt19937 &random, bool shorten) {
  Order order = allFusions();
  std::shuffle(order.begin(), order.end(), random);
  if (shorten)
    order.resize(1 + random() % order.size());
  return order;
}

/// Some hundred orders of all of them.
std::vector<Order> orders() {
  std::mt19937 random(1);
  std::vector<Order> result;
  for (int i = 0; i < 300; ++i)
    result.push_back(randomOrder(random, false));
  return result;
}

class FusedOpCase : public testing::TestWithParam<OpCase> {};

// The constants of GELU in a region are f32, those of the oracle's GELU are not.
TEST_P(FusedOpCase, GivesTheExpectedValues) {
  const OpCase &test = GetParam();
  double tolerance = test.model.text.find("gelu") == std::string::npos ? 1e-12 : 1e-6;
  expectSame(test.model, test.calls, test.expected, allFusions(), tolerance);
}

INSTANTIATE_TEST_SUITE_P(Ops, FusedOpCase, testing::ValuesIn(opCases()),
                         [](const auto &info) { return info.param.name; });

TEST(FusionEquivalence, TinyModelInEverySubsetAndManyOrders) {
  Model model = tinyModel({});
  std::vector<Call> calls = {
      {vector({1, 5, 2}), Batch::single(3).withAllRows()},
      {vector({3}), Batch::single(1, 3).withLastRows()},
  };
  std::vector<Tensors> expected = run(model, calls);
  for (const Order &order : subsets())
    expectSame(model, calls, expected, order, 1e-12);
  for (const Order &order : orders())
    expectSame(model, calls, expected, order, 1e-12);
}

/// What fired on `text`, with all fusions.
std::multiset<std::string> firedOn(const std::string &text) {
  passes::RemarkCollector collector(context());
  fused(text, allFusions());
  std::multiset<std::string> fired;
  for (const passes::FusionRemark &remark : collector.remarks())
    if (remark.fired)
      fired.insert(remark.pass);
  return fired;
}

TEST(FusionEquivalence, QuantisedWeightsInManySubsetsAndOrders) {
  Model model;
  model.text = R"(
    heddle.param @n : tensor<256xf32>
    heddle.param @g : tensor<16x256x!heddle.blocks<q8_0>>
    heddle.param @u : tensor<16x256x!heddle.blocks<q8_0>>
    heddle.param @d : tensor<256x16x!heddle.blocks<q8_0>>
    heddle.param @e : tensor<8x256x!heddle.blocks<q4_k>>
    func.func @forward(%x: tensor<?x256xf32>) -> (tensor<?x8xf32>, tensor<?x256xf32>) {
      %n = heddle.weight @n : tensor<256xf32>
      %g = heddle.weight @g : tensor<16x256x!heddle.blocks<q8_0>>
      %u = heddle.weight @u : tensor<16x256x!heddle.blocks<q8_0>>
      %d = heddle.weight @d : tensor<256x16x!heddle.blocks<q8_0>>
      %e = heddle.weight @e : tensor<8x256x!heddle.blocks<q4_k>>
      %h = heddle.norm rms %x weight(%n) {epsilon = 1.0e-05 : f64} : (tensor<?x256xf32>, tensor<256xf32>) -> tensor<?x256xf32>
      %a = heddle.matmul %h, %g {transpose_rhs} : (tensor<?x256xf32>, tensor<16x256x!heddle.blocks<q8_0>>) -> tensor<?x16xf32>
      %s = heddle.unary sigmoid %a : (tensor<?x16xf32>) -> tensor<?x16xf32>
      %b = heddle.matmul %h, %u {transpose_rhs} : (tensor<?x256xf32>, tensor<16x256x!heddle.blocks<q8_0>>) -> tensor<?x16xf32>
      %p = heddle.binary mul %s, %b : (tensor<?x16xf32>, tensor<?x16xf32>) -> tensor<?x16xf32>
      %y = heddle.matmul %p, %d {transpose_rhs} : (tensor<?x16xf32>, tensor<256x16x!heddle.blocks<q8_0>>) -> tensor<?x256xf32>
      %z = heddle.binary add %x, %y : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
      %m = heddle.norm layer %z {epsilon = 1.0e-05 : f64} : (tensor<?x256xf32>) -> tensor<?x256xf32>
      %o = heddle.matmul %m, %e {transpose_rhs} : (tensor<?x256xf32>, tensor<8x256x!heddle.blocks<q4_k>>) -> tensor<?x8xf32>
      return %o, %z : tensor<?x8xf32>, tensor<?x256xf32>
    })";
  auto numbers = [](Shape shape, double step) {
    Tensor64 tensor(std::move(shape));
    for (size_t i = 0; i < tensor.data.size(); ++i)
      tensor.data[i] = std::sin(step * double(i + 1));
    return tensor;
  };
  model.params["n"] = numbers({256}, 0.7);
  model.params["g"] = numbers({16, 256}, 0.3);
  model.params["u"] = numbers({16, 256}, 0.9);
  model.params["d"] = numbers({256, 16}, 1.7);
  model.params["e"] = numbers({8, 256}, 2.3);
  std::vector<Call> calls = {{numbers({3, 256}, 0.5)}};
  std::vector<Tensors> expected = run(model, calls);
  std::mt19937 random(2);
  for (int i = 0; i < 100; ++i)
    expectSame(model, calls, expected, randomOrder(random, i % 2 != 0), 1e-12);
  EXPECT_EQ(firedOn(model.text).count("fuse-quantise"), 2u);
}

TEST(FusionEquivalence, FusionsFireOnTheTinyModel) {
  EXPECT_THAT(firedOn(tinyModel({}).text),
              testing::UnorderedElementsAre("push-selection", "fuse-attention", "fuse-projections",
                                            "fuse-gated-linear", "fuse-epilogue", "fuse-epilogue"));
}

TEST(FusionEquivalence, RandomGraphsInRandomSubsetsAndOrders) {
  std::multiset<std::string> fired;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    RandomGraph graph = randomGraph(seed);
    std::vector<Tensors> expected = run(graph.model, {graph.call});
    std::mt19937 random(seed);
    for (int repetition = 0; repetition < 4; ++repetition)
      expectSame(graph.model, {graph.call}, expected, randomOrder(random, repetition > 0), 1e-12);
    if (HasFatalFailure() || HasNonfatalFailure())
      return;
    fired.merge(firedOn(graph.model.text));
  }
  // The graphs are worth something only while they give every fusion something to do.
  for (StringRef name : floatFusions())
    EXPECT_GT(fired.count(name.str()), 100u) << name.str();
}

} // namespace
