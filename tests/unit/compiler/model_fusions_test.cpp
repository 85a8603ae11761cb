// What fires on the models that are built in: nobody should find out from a benchmark that a change
// of the builder or of a pass has cost a model its attention.
#include "frontend/compiler/graph_state.h"
#include "frontend/models/bahdanau.h"
#include "frontend/models/gpt2.h"
#include "frontend/models/llama.h"
#include "frontend/models/transformer2017.h"
#include "passes/pipeline.h"
#include "passes/remarks.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <gmock/gmock.h>

#include <map>

using namespace heddle;
using testing::ElementsAre;
using testing::Pair;

namespace {

using Counts = std::map<std::string, int>;

/// How often each fusion fired on `graph`, and how often it nearly did ("not NAME").
Counts fired(const Graph &graph) {
  auto text = graph.text();
  if (!text) {
    ADD_FAILURE() << text.error().message;
    return {};
  }
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  detail::loadDialects(context);
  passes::RemarkCollector collector(context);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(*text, &context);
  mlir::PassManager manager(&context);
  passes::buildFusePipeline(manager, passes::FusionSet::all());
  EXPECT_TRUE(module && mlir::succeeded(manager.run(*module)));
  Counts counts;
  for (const passes::FusionRemark &remark : collector.remarks())
    counts[(remark.fired ? "" : "not ") + remark.pass] += 1;
  return counts;
}

// In every layer: attention; what it is fed with; the products after it and after the gate take the
// residual; the gate.
TEST(ModelFusions, Llama) {
  EXPECT_THAT(fired(llama({.layers = 3})),
              ElementsAre(Pair("fuse-attention", 3), Pair("fuse-epilogue", 6),
                          Pair("fuse-gated-linear", 3), Pair("fuse-projections", 3),
                          Pair("push-selection", 1)));
}

// In every layer, in the place of the network: the gate of the experts, and their weights after the
// product that follows.
TEST(ModelFusions, LlamaWithExperts) {
  Counts counts =
      fired(llama({.layers = 3, .experts = 4, .expertsPerToken = 2, .expertHidden = 48}));
  EXPECT_EQ(counts["fuse-gated-linear"], 3);
  EXPECT_EQ(counts["fuse-epilogue"], 6);
  EXPECT_EQ(counts["fuse-attention"], 3);
}

// In every layer: attention; four products with a bias, of which two take the residual and one
// GELU.
TEST(ModelFusions, Gpt2) {
  EXPECT_THAT(
      fired(gpt2({.layers = 3})),
      ElementsAre(Pair("fuse-attention", 3), Pair("fuse-epilogue", 12), Pair("push-selection", 1)));
}

// One attention in a layer of the encoder and two in one of the decoder, each with its residual;
// two products of the network. Only the decoder's own attention has a cache. Embedding and
// positions are scaled and added, on both sides.
TEST(ModelFusions, Transformer2017) {
  EXPECT_THAT(fired(transformer2017({.layers = 2})),
              ElementsAre(Pair("fuse-attention", 6), Pair("fuse-elementwise", 2),
                          Pair("fuse-epilogue", 14), Pair("fuse-projections", 2),
                          Pair("push-selection", 1)));
}

// Its scores are a sum over tanh: no product to build attention on.
TEST(ModelFusions, Bahdanau) {
  EXPECT_THAT(fired(bahdanau({})),
              ElementsAre(Pair("fuse-elementwise", 1), Pair("not fuse-attention", 1)));
}

} // namespace
