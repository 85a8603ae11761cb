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
    auto text = variantGraph(variants, GetParam().layout, GetParam().type).text();
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
    auto found = runNative(model, calls, {.isa = GetParam().isa, .threads = 2});
    EXPECT_TRUE(found) << found.error().message;
    return found && found->size() == calls.size() ? *found : std::vector<Tensors>();
  }

  /// Fails unless pieces of the sequence give the bits of the whole.
  void expectPiecesOfTheWhole(const std::vector<Tensors> &found, size_t variant) {
    if (!variants[variant].causal || variants[variant].prefix)
      return; // the first queries see keys that come later
    size_t next = 1;
    for (const auto &cut : cuts)
      for (int32_t first = 0; int32_t count : cut) {
        expectSameBits(found[next++][variant], rowsOf(found[0][variant], first, count));
        first += count;
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
  double bound = GetParam().type == ElementType::bf16 ? 1e-2 : 1e-5;
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
    testing::Values(Setting{{"multi_head", 4, 4}, ElementType::f32, "native", 0},
                    Setting{{"multi_head", 4, 4}, ElementType::bf16, "avx512", 1},
                    Setting{{"multi_query", 4, 1}, ElementType::f32, "avx2", 2},
                    Setting{{"multi_query", 4, 1}, ElementType::bf16, "native", 3},
                    Setting{{"grouped", 6, 2}, ElementType::f32, "native", 4},
                    Setting{{"grouped", 6, 2}, ElementType::bf16, "native", 5}),
    [](const auto &info) {
      return fmt::format("{}_{}_{}", info.param.layout.name,
                         info.param.type == ElementType::f32 ? "f32" : "bf16", info.param.isa);
    });

} // namespace
} // namespace heddle::test
