// Every variant of attention becomes one operation, which gives what the unfused graph gives, bit
// for bit and near to fp64, whether a sequence comes whole, in pieces or token by token.
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"
#include "tests/unit/compiler/attention_variants.h"

#include "codegen/jit/machine.h"
#include "ir/ops.h"
#include "passes/pipeline.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <fmt/format.h>
#include <limits>
#include <string_view>

namespace heddle::test {
namespace {

/// The graph of `text` after all fusions; `attentions` and `softmaxes` count what is left of them.
std::string fused(const std::string &text, int &attentions, int &softmaxes) {
  auto module = parse(text);
  if (!module) {
    ADD_FAILURE() << module.error().message;
    return {};
  }
  mlir::PassManager manager(&context());
  passes::buildFusePipeline(manager, passes::FusionSet::all());
  EXPECT_TRUE(mlir::succeeded(manager.run(**module)));
  attentions = softmaxes = 0;
  (*module)->walk([&](mlir::Operation *op) {
    attentions += mlir::isa<ir::AttentionOp>(op);
    softmaxes += mlir::isa<ir::SoftmaxOp>(op);
  });
  std::string out;
  llvm::raw_string_ostream stream(out);
  (*module)->print(stream);
  return out;
}

/// Fails unless both hold the same bits, NaN apart.
void expectSameBits(const Tensor64 &found, const Tensor64 &expected) {
  ASSERT_EQ(found.shape, expected.shape);
  for (size_t i = 0; i < found.data.size(); ++i) {
    bool alike =
        std::bit_cast<uint64_t>(found.data[i]) == std::bit_cast<uint64_t>(expected.data[i]);
    ASSERT_TRUE(alike || (std::isnan(found.data[i]) && std::isnan(expected.data[i])))
        << "entry " << i << ": " << found.data[i] << ", expected " << expected.data[i];
  }
}

/// rms(found - expected) / rms(expected).
double distance(const Tensor64 &found, const Tensor64 &expected) {
  double error = 0, size = 0;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    error += std::pow(found.data[i] - expected.data[i], 2);
    size += std::pow(expected.data[i], 2);
  }
  return size > 0 ? std::sqrt(error / size) : std::sqrt(error);
}

/// Rows `first` to `first + count` of a tensor.
Tensor64 rowsOf(const Tensor64 &tensor, int64_t first, int64_t count) {
  int64_t width = tensor.stride(0);
  Shape shape = tensor.shape;
  shape[0] = count;
  auto from = tensor.data.begin() + first * width;
  return Tensor64(shape, {from, from + count * width});
}

struct Setting {
  HeadLayout layout;
  ElementType type;
  const char *isa;
  int64_t turn;
  CacheElement kv;

  /// Of rms(found - fp64) / rms(fp64).
  double bound() const {
    double ofCache = kv == CacheElement::int8 ? 2e-2 : kv == CacheElement::f16 ? 1e-3 : 1e-5;
    return type == ElementType::bf16 ? 1e-2 : ofCache;
  }
};

/// One variant in this many is run in a setting, and the settings take turns; with
/// HEDDLE_VARIANTS=all every variant is run in every setting.
int64_t shareOfVariants() {
  const char *wanted = std::getenv("HEDDLE_VARIANTS");
  return wanted && std::string_view(wanted) == "all" ? 1 : 6;
}

constexpr int32_t tokens = 37;

/// The lengths of calls that make up the sequence of `tokens`.
const std::vector<std::vector<int32_t>> cuts = {{tokens - 1, 1}, {1, 16, 3, 1, 1, 15}};

class AttentionVariants : public testing::TestWithParam<Setting> {
protected:
  void SetUp() override {
    if (!codegen::selectTarget(GetParam().isa))
      GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
    std::vector<AttentionVariant> all = attentionVariants();
    for (size_t i = size_t(GetParam().turn % shareOfVariants()); i < all.size();
         i += size_t(shareOfVariants()))
      variants.push_back(all[i]);
    Graph graph = variantGraph(variants, GetParam().layout, GetParam().type);
    auto text = show(graph, Level::graph, Phase::prefill, {.kv = GetParam().kv});
    ASSERT_TRUE(text) << text.error().message;
    unfused = {*text, variantWeights(*text), 1, 64};
    int attentions = 0, softmaxes = 0;
    woven = unfused;
    woven.text = fused(*text, attentions, softmaxes);
    EXPECT_EQ(attentions, int(variants.size()));
    EXPECT_EQ(softmaxes, 0) << woven.text;
  }

  Call call(int32_t first, int32_t count) { return variantCall(GetParam().layout, first, count); }

  /// The whole sequence, then each of its cuts: every call that begins at 0 begins anew.
  std::vector<Call> wholeAndPieces() {
    std::vector<Call> calls = {call(0, tokens)};
    for (const auto &cut : cuts)
      for (int32_t first = 0; int32_t count : cut) {
        calls.push_back(call(first, count));
        first += count;
      }
    return calls;
  }

  /// Tokens that are no numbers, at once or among those that came before.
  std::vector<Call> dirty() {
    std::vector<Call> calls = {call(0, tokens - 1), call(tokens - 1, 1)};
    auto &vectors = std::get<Tensor64>(calls[0][0]).data;
    for (int64_t i = 0; i < variantWidth; ++i) {
      vectors[size_t(1 * variantWidth + i)] = std::numeric_limits<double>::quiet_NaN();
      vectors[size_t(20 * variantWidth + i)] = std::numeric_limits<double>::infinity();
    }
    return calls;
  }

  std::vector<Tensors> native(const Model &model, const std::vector<Call> &calls) {
    // Of the cuts, pieces of up to 8 tokens are decoded.
    auto found = runNative(model, calls, {.isa = GetParam().isa, .threads = 2, .decodeRows = 8});
    EXPECT_TRUE(found) << found.error().message;
    return found && found->size() == calls.size() ? *found : std::vector<Tensors>();
  }

  /// Fails unless pieces of the sequence give the bits of the whole, as far as a query sees nothing
  /// that comes after its piece.
  void expectPiecesOfTheWhole(const std::vector<Tensors> &found, size_t variant) {
    bool looksAhead = !variants[variant].causal;
    size_t next = 1;
    for (const auto &cut : cuts)
      for (int32_t first = 0; int32_t count : cut) {
        int32_t end = first + count;
        if (end == tokens || (!looksAhead && end >= variants[variant].prefix))
          expectSameBits(found[next][variant], rowsOf(found[0][variant], first, count));
        ++next;
        first = end;
      }
  }

  std::vector<AttentionVariant> variants;
  Model unfused, woven;
};

TEST_P(AttentionVariants, AreOneOperationThatGivesTheSame) {
  std::vector<Call> calls = wholeAndPieces();
  size_t clean = calls.size();
  std::vector<Call> all = calls;
  for (const Call &call : dirty())
    all.push_back(call);
  auto plain = native(unfused, calls), found = native(woven, all);
  auto expected = interpret(unfused, {calls[0]}), truth = interpret(woven, dirty());
  ASSERT_TRUE(!plain.empty() && !found.empty() && expected && truth);
  double bound = GetParam().bound();
  for (size_t i = 0; i < variants.size(); ++i) {
    SCOPED_TRACE(variants[i].name);
    EXPECT_LE(distance(found[0][i], (*expected)[0][i]), bound);
    for (size_t each = 0; each < calls.size(); ++each)
      expectSameBits(found[each][i], plain[each][i]);
    expectPiecesOfTheWhole(found, i);
    if (variants[i].visible)
      for (int64_t row = 3; row < tokens; row += 7)
        for (double value : rowsOf(found[0][i], row, 1).data)
          ASSERT_EQ(value, 0) << "row " << row << " sees nothing";
    // Whoever does not see what is no number does not notice. The cut after the first call is the
    // one of the dirty calls.
    for (size_t step = 0; step < 2; ++step) {
      const Tensor64 &sees = (*truth)[step][i];
      for (size_t at = 0; at < sees.data.size(); ++at) {
        double value = found[clean + step][i].data[at];
        if (std::isfinite(sees.data[at]))
          ASSERT_EQ(value, found[1 + step][i].data[at])
              << "dirty call " << step << ", entry " << at;
        else
          ASSERT_FALSE(std::isfinite(value)) << "dirty call " << step << ", entry " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, AttentionVariants,
    testing::Values(
        Setting{{"multi_head", 4, 4}, ElementType::f32, "native", 0, CacheElement::f32},
        Setting{{"multi_head", 4, 4}, ElementType::bf16, "avx512", 1, CacheElement::bf16},
        Setting{{"multi_query", 4, 1}, ElementType::f32, "avx2", 2, CacheElement::f32},
        Setting{{"multi_query", 4, 1}, ElementType::bf16, "native", 3, CacheElement::bf16},
        Setting{{"grouped", 6, 2}, ElementType::f32, "native", 4, CacheElement::f32},
        Setting{{"grouped", 6, 2}, ElementType::bf16, "native", 5, CacheElement::bf16},
        Setting{{"multi_head", 4, 4}, ElementType::f32, "native", 3, CacheElement::int8},
        Setting{{"multi_head", 4, 4}, ElementType::f32, "avx2", 4, CacheElement::f16},
        Setting{{"multi_query", 4, 1}, ElementType::f32, "avx2", 5, CacheElement::int8},
        Setting{{"grouped", 6, 2}, ElementType::f32, "native", 0, CacheElement::f16},
        Setting{{"grouped", 6, 2}, ElementType::bf16, "avx512", 2, CacheElement::int8}),
    [](const auto &info) {
      return fmt::format("{}_{}_kv_{}_{}", info.param.layout.name,
                         info.param.type == ElementType::f32 ? "f32" : "bf16",
                         runtime::typeName(info.param.kv), info.param.isa);
    });

//===-- Without a cache -----------------------------------------------------------------------===//

Tensor64 someNumbers(Shape shape, int64_t seed) {
  Tensor64 tensor(std::move(shape));
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.data[size_t(i)] = variantNumber(i, seed);
  return tensor;
}

/// Checks that `graph` becomes one attention, that it gives what the unfused graph gives, and both
/// what the interpreter gives.
void expectOneAttention(const Graph &graph, const std::vector<Call> &calls) {
  auto text = graph.text();
  ASSERT_TRUE(text) << text.error().message;
  Model unfused = {*text, variantWeights(*text), 1, 64}, woven = unfused;
  int attentions = 0, softmaxes = 0;
  woven.text = fused(*text, attentions, softmaxes);
  EXPECT_EQ(attentions, 1) << woven.text;
  EXPECT_EQ(softmaxes, 0);
  auto plain = runNative(unfused, calls, {.threads = 2});
  auto found = runNative(woven, calls, {.threads = 2});
  auto expected = interpret(unfused, calls);
  ASSERT_TRUE(plain && found && expected);
  for (size_t i = 0; i < calls.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_LE(distance((*found)[i][0], (*expected)[i][0]), 1e-5);
    expectSameBits((*found)[i][0], (*plain)[i][0]);
  }
}

/// Rows of a batch `[batch, rows, 24]` as heads `[batch, heads, rows, width]`.
Value batchedHeads(Value x, Value weight, int64_t batch, int64_t rows, int64_t heads) {
  Value all = matmul(x, weight, Orientation::outIn);
  return transpose(reshape(all, {batch, rows, heads, all.width() / heads}), {0, 2, 1, 3});
}

/// Key heads `[batch, few, rows, width]` for `heads` query heads.
Value repeatedHeads(Value x, int64_t batch, int64_t rows, int64_t few, int64_t heads) {
  Value single = reshape(x, {batch, few, 1, rows, x.width()});
  Value groups = expand(single, {anySize, anySize, heads / few, anySize, anySize});
  return reshape(groups, {batch, heads, rows, x.width()});
}

/// Grouped heads with an explicit batch; either the batch is open, or both kinds of rows are.
Graph batchedGraph(int64_t batch, int64_t queries, int64_t keys) {
  constexpr int64_t heads = 4, few = 2;
  Graph graph("batch");
  Value x = graph.input({batch, queries, variantWidth});
  Value memory = graph.input({batch, keys, variantWidth});
  Value padding = graph.input({batch, 1, 1, keys}, ElementType::i1);
  Value bias = graph.input({queries, keys});
  Value q = batchedHeads(x, graph.weight("q", {heads * 8, variantWidth}), batch, queries, heads);
  Value k = batchedHeads(memory, graph.weight("k", {few * 8, variantWidth}), batch, keys, few);
  Value v = batchedHeads(memory, graph.weight("v", {few * 12, variantWidth}), batch, keys, few);
  Value scores = matmul(q, repeatedHeads(k, batch, keys, few, heads), Orientation::outIn);
  scores = scores * 0.25 + bias + graph.weight("slopes", {heads, 1, 1});
  scores = mask(mask(scores, {.causal = true, .window = 9}), {.visible = padding});
  Value weights = softmaxWithSink(scores, graph.weight("sink", {heads}));
  Value mixed = matmul(weights, repeatedHeads(v, batch, keys, few, heads));
  graph.output(reshape(transpose(mixed, {0, 2, 1, 3}), {batch, queries, heads * 12}));
  return graph;
}

Call batchedCall(int64_t batch, int64_t queries, int64_t keys) {
  Tensor64 padding({batch, 1, 1, keys});
  for (int64_t i = 0; i < padding.size(); ++i) // on the left, more for each sequence
    padding.data[size_t(i)] = i % keys >= i / keys;
  return {someNumbers({batch, queries, variantWidth}, 1),
          someNumbers({batch, keys, variantWidth}, 2), padding, someNumbers({queries, keys}, 3)};
}

TEST(AttentionShapes, KeepAnExplicitBatch) {
  expectOneAttention(batchedGraph(3, anySize, 19), {batchedCall(3, 1, 19), batchedCall(3, 23, 19)});
  expectOneAttention(batchedGraph(anySize, 5, 7), {batchedCall(1, 5, 7), batchedCall(4, 5, 7)});
}

TEST(AttentionShapes, CrossToKeysOfAnotherLength) {
  for (bool causal : {false, true}) {
    Graph graph("cross");
    auto [x, rows] = graph.tokenVectors(variantWidth);
    Value memory = graph.input({anySize, variantWidth});
    Value q = splitHeads(linear(x, graph.weight("q", {32, variantWidth})), 4);
    Value k = splitHeads(linear(memory, graph.weight("k", {16, variantWidth})), 2);
    Value v = splitHeads(linear(memory, graph.weight("v", {10, variantWidth})), 2);
    Value scores = matmul(q, gatherHeads(k, 4), Orientation::outIn) * 0.25;
    // Queries stand where their sequence says, keys at 0, 1, 2, ..
    scores = mask(scores, {.queries = rows, .causal = causal});
    graph.output(mergeHeads(matmul(softmax(scores), gatherHeads(v, 4))));
    std::vector<Call> calls;
    for (auto [queries, keys] : {std::pair(3, 40), {40, 3}, {1, 1}, {5, 16}})
      calls.push_back({someNumbers({queries, variantWidth}, 1), Batch::single(queries, 2),
                       someNumbers({keys, variantWidth}, 2)});
    expectOneAttention(graph, calls);
  }
}

TEST(AttentionShapes, NeedNoHeads) {
  Graph graph("one head");
  Value x = graph.input({anySize, variantWidth});
  Value q = matmul(x, graph.weight("q", {variantWidth, 8}));
  Value k = matmul(x, graph.weight("k", {variantWidth, 8}));
  Value v = matmul(x, graph.weight("v", {variantWidth, 12}));
  Value scores = mask(matmul(q, k, Orientation::outIn) * 0.5, {.chunk = 6});
  graph.output(matmul(softmaxWithSink(scores, graph.weight("sink", {1})), v));
  expectOneAttention(graph,
                     {{someNumbers({1, variantWidth}, 1)}, {someNumbers({29, variantWidth}, 2)}});
}

} // namespace
} // namespace heddle::test
