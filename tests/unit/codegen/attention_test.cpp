// Attention as native code against the interpreter: masks, groups, caches, ragged batches, NaN in
// keys that no query may see.
#include "tests/unit/codegen/run_interpreter.h"
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string_view>

namespace heddle::test {
namespace {

struct Variant {
  std::string name;
  std::string mask; ///< attributes of the mask
  int64_t heads, keyHeads, width, valueWidth;
};

std::vector<Variant> variants() {
  return {{"causal", "causal", 4, 2, 8, 8},
          {"window", "causal, window = 3 : i64", 2, 2, 16, 16},
          {"wide_window", "causal, window = 40 : i64", 2, 1, 4, 20},
          {"prefix", "causal, prefix = 5 : i64", 3, 1, 6, 5},
          {"open", "", 6, 2, 10, 33},
          {"window_alone", "window = 9 : i64", 1, 1, 1, 1},
          {"window_in_prefix", "causal, prefix = 21 : i64, window = 3 : i64", 2, 2, 8, 8},
          {"chunk", "causal, chunk = 7 : i64", 4, 2, 8, 12},
          {"chunk_alone", "chunk = 20 : i64", 2, 1, 8, 8},
          {"narrow_heads", "causal, window = 40 : i64", 8, 8, 6, 7},
          {"one_group_of_eight", "causal", 8, 1, 64, 64},
          {"shared_by_sixteen", "causal, window = 40 : i64", 16, 1, 16, 32}};
}

Tensor64 randomTensor(Shape shape, unsigned seed) {
  Tensor64 tensor(std::move(shape));
  std::mt19937 engine(seed);
  for (double &value : tensor.data)
    value = double(int(engine() % 4001) - 2000) / 1000;
  return tensor;
}

std::string tensorType(int64_t heads, int64_t width, const char *element = "f32") {
  return "tensor<" + std::to_string(heads) + "x?x" + std::to_string(width) + "x" + element + ">";
}

/// The region that scales a score.
std::string region() {
  return " {\n^bb0(%s: f32):\n%scale = arith.constant 0.3 : f32\n%t = arith.mulf %s, %scale : f32\n"
         "heddle.yield %t : f32\n}\n";
}

std::string attributes(const Variant &v) {
  return v.mask.empty() ? "{masked}" : "{masked, " + v.mask + "}";
}

constexpr const char *cacheElements[] = {"f32", "bf16", "f16", "!heddle.blocks<int8>"};

/// How far a single entry may be from the oracle, which rounds nothing; in bf16 queries and weights
/// are rounded too.
double boundOf(std::string_view element) {
  return element == "f32" ? 3e-6 : element == "f16" ? 2e-3 : element == "bf16" ? 4e-2 : 6e-2;
}

/// Attention over a cache of `element`.
std::string cachedText(const Variant &v, const char *element) {
  std::string q = tensorType(v.heads, v.width), k = tensorType(v.keyHeads, v.width),
              val = tensorType(v.keyHeads, v.valueWidth), o = tensorType(v.heads, v.valueWidth);
  const char *view = std::string_view(element) == "bf16" ? element : "f32";
  std::string keys = tensorType(v.keyHeads, v.width, view);
  std::string values = tensorType(v.keyHeads, v.valueWidth, view);
  std::string cache = "!heddle.cache<1 x " + std::to_string(v.keyHeads) + ", " +
                      std::to_string(v.width) + ", " + std::to_string(v.valueWidth) + ", " +
                      element + ">";
  return "func.func @forward(%q: " + q + ", %k: " + k + ", %v: " + val + ", %ids: tensor<?xi32>, " +
         "%rows: !heddle.sequences, %cache: " + cache + ") -> (" + o + ", " + cache + ") {\n" +
         "%c, %ks, %vs, %kr = heddle.cache_append %cache, %k, %v, %rows {layer = 0 : i64} : (" +
         cache + ", " + k + ", " + val + ", !heddle.sequences) -> (" + cache + ", " + keys + ", " +
         values + ", !heddle.sequences)\n%o = heddle.attention %q, %ks, %vs queries(%rows) " +
         "keys(%kr) " + attributes(v) + " : (" + q + ", " + keys + ", " + values +
         ", !heddle.sequences, !heddle.sequences) -> " + o + region() + "return %o, %c : " + o +
         ", " + cache + "\n}\n";
}

/// Attention over tensors, with or without a description of their rows.
std::string tensorText(const Variant &v, bool described) {
  std::string q = tensorType(v.heads, v.width), k = tensorType(v.keyHeads, v.width),
              val = tensorType(v.keyHeads, v.valueWidth), o = tensorType(v.heads, v.valueWidth);
  std::string rows = described ? ", %ids: tensor<?xi32>, %rows: !heddle.sequences" : "";
  std::string operands = described ? "queries(%rows) keys(%rows) " : "";
  std::string types = described ? ", !heddle.sequences, !heddle.sequences" : "";
  return "func.func @forward(%q: " + q + ", %k: " + k + ", %v: " + val + rows + ") -> " + o +
         " {\n%o = heddle.attention %q, %k, %v " + operands + attributes(v) + " : (" + q + ", " +
         k + ", " + val + types + ") -> " + o + region() + "return %o : " + o + "\n}\n";
}

/// Attention over the tensors of another batch, rounded to `element`: as of a decoder to its
/// encoder.
std::string crossText(const Variant &v, const std::string &element) {
  std::string q = tensorType(v.heads, v.width), k = tensorType(v.keyHeads, v.width),
              val = tensorType(v.keyHeads, v.valueWidth), o = tensorType(v.heads, v.valueWidth);
  std::string keys = tensorType(v.keyHeads, v.width, element.c_str());
  std::string values = tensorType(v.keyHeads, v.valueWidth, element.c_str());
  std::string text = "func.func @forward(%q: " + q + ", %ids: tensor<?xi32>, " +
                     "%rows: !heddle.sequences, %k: " + k + ", %v: " + val +
                     ", %others: tensor<?xi32>, %keyRows: !heddle.sequences) -> " + o + " {\n";
  std::string from = "%k", fromValues = "%v";
  if (element != "f32") {
    text += "%kr = heddle.cast %k to bf16 : (" + k + ") -> " + keys +
            "\n%vr = heddle.cast %v to bf16 : (" + val + ") -> " + values + "\n";
    from = "%kr";
    fromValues = "%vr";
  }
  return text + "%o = heddle.attention %q, " + from + ", " + fromValues +
         " queries(%rows) keys(%keyRows) " + attributes(v) + " : (" + q + ", " + keys + ", " +
         values + ", !heddle.sequences, !heddle.sequences) -> " + o + region() +
         "return %o : " + o + "\n}\n";
}

using Sequences = std::vector<runtime::Sequence>;

int32_t rowsOf(const Sequences &sequences) {
  int32_t rows = 0;
  for (const runtime::Sequence &sequence : sequences)
    rows += sequence.length;
  return rows;
}

/// Rows [from, from + count) of a tensor `[heads, rows, width]`.
Tensor64 rowsFrom(const Tensor64 &tensor, int64_t from, int64_t count) {
  Tensor64 part({tensor.dim(0), count, tensor.dim(2)});
  for (int64_t head = 0; head < tensor.dim(0); ++head)
    for (int64_t i = 0; i < count * tensor.dim(2); ++i)
      part.data[head * count * tensor.dim(2) + i] =
          tensor.data[(head * tensor.dim(1) + from) * tensor.dim(2) + i];
  return part;
}

Call crossCall(const Variant &v, const Sequences &queries, const Sequences &keys, unsigned seed) {
  int32_t rows = rowsOf(queries), others = rowsOf(keys);
  return {randomTensor({v.heads, rows, v.width}, seed),
          Tensor64(Shape{rows}),
          Batch{queries, {}},
          randomTensor({v.keyHeads, others, v.width}, seed + 1),
          randomTensor({v.keyHeads, others, v.valueWidth}, seed + 2),
          Tensor64(Shape{others}),
          Batch{keys, {}}};
}

/// The arguments of a call whose rows belong to `sequences`.
Call callOf(const Variant &v, std::vector<runtime::Sequence> sequences, unsigned seed) {
  int32_t rows = 0;
  for (const runtime::Sequence &sequence : sequences)
    rows += sequence.length;
  Batch batch{sequences, {}};
  return {randomTensor({v.heads, rows, v.width}, seed),
          randomTensor({v.keyHeads, rows, v.width}, seed + 1),
          randomTensor({v.keyHeads, rows, v.valueWidth}, seed + 2), Tensor64(Shape{rows}), batch};
}

void expectSame(const std::vector<Tensors> &found, const std::vector<Tensors> &expected,
                double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i)
    expectNear(found[i].at(0), expected[i].at(0), tolerance, "call " + std::to_string(i));
}

class Attention : public testing::TestWithParam<JitOptions> {
protected:
  void SetUp() override {
    if (!codegen::selectTarget(GetParam().isa))
      GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
  }
};

TEST_P(Attention, ReadsTheCache) {
  for (const Variant &v : variants())
    for (const char *element : cacheElements) {
      SCOPED_TRACE(v.name + " " + element);
      Model model{.text = cachedText(v, element), .params = {}, .slots = 3, .context = 100};
      // Two ragged prompts, a chunk for one of them, a step for both and a new third one.
      std::vector<Call> calls = {callOf(v, {{0, 17, 0, 1}, {17, 3, 0, 0}}, 1),
                                 callOf(v, {{0, 33, 17, 1}}, 5),
                                 callOf(v, {{0, 1, 3, 0}, {1, 1, 50, 1}, {2, 40, 0, 2}}, 9)};
      auto found = runNative(model, calls, GetParam());
      auto expected = interpret(model, calls);
      ASSERT_TRUE(bool(found)) << found.error().message;
      ASSERT_TRUE(bool(expected)) << expected.error().message;
      expectSame(*found, *expected, boundOf(element));
    }
}

TEST_P(Attention, ReadsTensors) {
  for (const Variant &v : variants())
    for (bool described : {false, true}) {
      SCOPED_TRACE(v.name + (described ? " described" : ""));
      Model model{.text = tensorText(v, described)};
      std::vector<runtime::Sequence> sequences = {{0, 37, 0, 0}};
      if (described)
        sequences = {{0, 5, 2, 0}, {5, 0, 0, 1}, {5, 31, 0, 2}};
      std::vector<Call> calls = {callOf(v, sequences, 21)};
      if (!described)
        calls[0].resize(3);
      auto found = runNative(model, calls, GetParam());
      auto expected = interpret(model, calls);
      ASSERT_TRUE(bool(found)) << found.error().message;
      ASSERT_TRUE(bool(expected)) << expected.error().message;
      expectSame(*found, *expected, 3e-6);
    }
}

TEST_P(Attention, ReadsTheTensorsOfAnotherBatch) {
  const Sequences queries = {{0, 5, 0, 0}, {5, 9, 3, 1}, {14, 18, 0, 2}};
  // As many sequences, fewer, none, more, and some that are empty.
  const std::vector<Sequences> others = {
      {{0, 7, 0, 0}, {7, 0, 0, 1}, {7, 21, 3, 2}},
      {{0, 20, 0, 0}},
      {},
      {{0, 3, 0, 0}, {3, 17, 0, 1}, {20, 2, 1, 2}, {22, 40, 0, 3}}};
  for (const Variant &v : variants())
    for (const Sequences &keys : others) {
      SCOPED_TRACE(v.name + " " + std::to_string(keys.size()) + " sequences of keys");
      Model model{.text = crossText(v, "f32")};
      std::vector<Call> calls = {crossCall(v, queries, keys, 31)};
      auto found = runNative(model, calls, GetParam());
      auto expected = interpret(model, calls);
      ASSERT_TRUE(bool(found)) << found.error().message;
      ASSERT_TRUE(bool(expected)) << expected.error().message;
      expectSame(*found, *expected, 3e-6);
      for (const runtime::Sequence &sequence :
           Sequences(queries.begin() + std::min<size_t>(keys.size(), 3), queries.end()))
        for (double value : rowsFrom((*found)[0][0], sequence.start, sequence.length).data)
          EXPECT_EQ(value, 0);
    }
}

TEST_P(Attention, NeighboursInABatchOfTensorsChangeNothing) {
  Variant v{"", "causal", 4, 2, 8, 20};
  const Sequences queries = {{0, 5, 0, 0}, {5, 31, 0, 1}, {36, 20, 0, 2}};
  const Sequences keys = {{0, 3, 0, 0}, {3, 38, 0, 1}, {41, 19, 0, 2}};
  for (const char *element : {"f32", "bf16"}) {
    Model model{.text = crossText(v, element)};
    Call together = crossCall(v, queries, keys, 41);
    auto batch = runNative(model, {together}, GetParam());
    ASSERT_TRUE(bool(batch)) << batch.error().message;
    for (size_t i = 0; i < queries.size(); ++i) {
      Call alone = crossCall(v, {{0, queries[i].length, 0, 0}}, {{0, keys[i].length, 0, 0}}, 41);
      for (size_t tensor : {0, 3, 4}) {
        const runtime::Sequence &sequence = tensor == 0 ? queries[i] : keys[i];
        alone[tensor] =
            rowsFrom(std::get<Tensor64>(together[tensor]), sequence.start, sequence.length);
      }
      auto single = runNative(model, {alone}, GetParam());
      ASSERT_TRUE(bool(single)) << single.error().message;
      EXPECT_EQ((*single)[0][0].data,
                rowsFrom((*batch)[0][0], queries[i].start, queries[i].length).data)
          << element << " sequence " << i;
    }
  }
}

TEST_P(Attention, HiddenKeysDoNotLeak) {
  Variant v{"", "causal, window = 4 : i64", 2, 1, 8, 8};
  for (const char *element : cacheElements) {
    Model model{.text = cachedText(v, element), .params = {}, .slots = 1, .context = 40};
    std::vector<Call> clean = {callOf(v, {{0, 21, 0, 0}}, 3)};
    std::vector<Call> dirty = clean;
    // Position 10 holds no number: the queries 10 to 13 see it, the others must not notice.
    for (size_t tensor : {1, 2})
      for (int64_t i = 0; i < 8; ++i)
        std::get<Tensor64>(dirty[0][tensor]).data[10 * 8 + i] =
            i % 2 ? std::numeric_limits<double>::quiet_NaN()
                  : std::numeric_limits<double>::infinity();
    auto expected = runNative(model, clean, GetParam());
    auto found = runNative(model, dirty, GetParam());
    ASSERT_TRUE(expected && found);
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t row = 0; row < 21; ++row)
        for (int64_t i = 0; i < 8; ++i) {
          size_t at = (head * 21 + row) * 8 + i;
          double value = (*found)[0][0].data[at];
          if (row >= 10 && row < 14)
            EXPECT_TRUE(std::isnan(value)) << row;
          else
            EXPECT_EQ(value, (*expected)[0][0].data[at]) << row;
        }
  }
}

TEST_P(Attention, PiecesGiveTheSameBits) {
  Variant v{"", "causal", 4, 2, 8, 8};
  for (const char *element : cacheElements) {
    Model model{.text = cachedText(v, element), .params = {}, .slots = 1, .context = 64};
    Call whole = callOf(v, {{0, 40, 0, 0}}, 7);
    auto slice = [&](int32_t from, int32_t count) {
      Call piece = whole;
      for (size_t tensor = 0; tensor < 3; ++tensor)
        piece[tensor] = rowsFrom(std::get<Tensor64>(whole[tensor]), from, count);
      piece[3] = Tensor64(Shape{count});
      piece[4] = Batch{{{0, count, from, 0}}, {}};
      return piece;
    };
    auto once = runNative(model, {whole}, GetParam());
    auto pieces = runNative(model, {slice(0, 17), slice(17, 22), slice(39, 1)}, GetParam());
    ASSERT_TRUE(once && pieces);
    int32_t first = 0;
    for (const Tensors &piece : *pieces) {
      int64_t count = piece[0].dim(1);
      for (int64_t head = 0; head < 4; ++head)
        for (int64_t i = 0; i < count * 8; ++i)
          ASSERT_EQ(piece[0].data[head * count * 8 + i],
                    (*once)[0][0].data[(head * 40 + first) * 8 + i]);
      first += int32_t(count);
    }
  }
}

/// Bytes of workspace that all steps of `text` plan for `tokens` positions of one sequence.
int64_t workspaceOf(const std::string &text, int64_t tokens) {
  auto model = compileText(text);
  if (!model)
    return -1;
  const runtime::Program &program = model->programs().prefill.program;
  std::vector<int64_t> dims(program.dims.size(), tokens);
  int64_t bytes = 0;
  for (const runtime::Step &step : program.steps)
    bytes += runtime::evaluate(step.attention, dims.data());
  return bytes;
}

TEST(AttentionWorkspace, GrowsWithTheLengthAndNotWithItsSquare) {
  Variant v{"", "causal", 32, 8, 64, 64};
  for (const std::string &text : {cachedText(v, "f32"), tensorText(v, false)}) {
    int64_t bytes = workspaceOf(text, 16384);
    EXPECT_GT(bytes, 0);
    EXPECT_LT(double(bytes), 0.01 * 32 * 16384 * 16384 * 4);
    EXPECT_LT(workspaceOf(text, 32768), 2 * bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Attention,
                         testing::Values(JitOptions{"avx2", 1, false},
                                         JitOptions{"avx512", 5, false},
                                         JitOptions{"avx512_bf16", 1, false},
                                         JitOptions{"native", 2, true}));

} // namespace
} // namespace heddle::test
