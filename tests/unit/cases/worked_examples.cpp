// The worked examples of the theory, each as a graph in text with the numbers the theory gives.
#include "tests/unit/cases/cases.h"

#include "tests/unit/cases/tiny_model.h"

#include <cmath>
#include <gtest/gtest.h>
#include <numbers>

namespace heddle::test {

// The theory prints two decimals.
static constexpr double printed = 0.005;
// What single precision leaves of an equality.
static constexpr double close = 2e-6;

static double at(const Tensor64 &tensor, int64_t row, int64_t column) {
  return tensor.data[size_t(row * tensor.dim(-1) + column)];
}

static void expectRow(const Tensor64 &tensor, int64_t row, std::vector<double> expected,
                      double tolerance) {
  ASSERT_EQ(tensor.dim(-1), int64_t(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(at(tensor, row, int64_t(i)), expected[i], tolerance)
        << "row " << row << ", column " << i;
}

static Tensor64 rowOf(const Tensor64 &tensor, int64_t row) {
  auto first = tensor.data.begin() + row * tensor.dim(-1);
  return vector({first, first + tensor.dim(-1)});
}

//===-- Attention by hand
//-----------------------------------------------------------------------===//

/// softmax(q k^T / sqrt(2)) v of width 2; `masked` stands between the scores and the softmax.
/// Returns the scores, as masked, the weights and the output.
static Model attentionByHand(const std::string &mask) {
  std::string rows = "tensor<?x2xf32>", scores = "tensor<?x?xf32>";
  return {forward("%q: " + rows + ", %k: " + rows + ", %v: " + rows,
                  scores + ", " + scores + ", " + rows,
                  "%p = heddle.matmul %q, %k {transpose_rhs} : (" + rows + ", " + rows + ") -> " +
                      scores + "\n%c = heddle.constant dense<0.70710678> : tensor<f32>\n" +
                      "%s = heddle.binary mul %p, %c : (" + scores + ", tensor<f32>) -> " + scores +
                      "\n%m = heddle.mask %s {" + mask + "} : (" + scores + ") -> " + scores +
                      "\n%w = heddle.softmax %m : (" + scores + ") -> " + scores +
                      "\n%o = heddle.matmul %w, %v : (" + scores + ", " + rows + ") -> " + rows,
                  "%m, %w, %o")};
}

static const Tensor64 theoryKeys({3, 2}, {1, 0, 0, 1, 1, 1});
static const Tensor64 theoryValues({3, 2}, {1, 0, 0, 10, 5, 5});

static void attentionOfThreeTokens(const Run &run) {
  Tensors found = runOnce(run, attentionByHand(""), {theoryKeys, theoryKeys, theoryValues});
  ASSERT_EQ(found.size(), 3u);
  expectRow(found[0], 0, {0.71, 0, 0.71}, printed);
  expectRow(found[1], 0, {0.40, 0.20, 0.40}, printed);
  expectRow(found[2], 0, {2.41, 3.98}, printed);
  expectRow(found[1], 1, {0.20, 0.40, 0.40}, printed);
  expectRow(found[2], 1, {2.20, 6.02}, printed);
}

static void causalAttentionOfThreeTokens(const Run &run) {
  Call call = {theoryKeys, theoryKeys, theoryValues};
  Tensors found = runOnce(run, attentionByHand("causal"), call);
  Tensors unmasked = runOnce(run, attentionByHand(""), call);
  ASSERT_EQ(found.size(), 3u);
  ASSERT_EQ(unmasked.size(), 3u);
  double hidden = -INFINITY;
  std::vector<std::vector<double>> scores = {
      {0.71, hidden, hidden}, {0, 0.71, hidden}, {0.71, 0.71, 1.41}};
  std::vector<std::vector<double>> weights = {{1, 0, 0}, {0.33, 0.67, 0}, {0.25, 0.25, 0.50}};
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 3; ++column) {
      if (column > row)
        EXPECT_EQ(at(found[0], row, column), hidden);
      else
        EXPECT_NEAR(at(found[0], row, column), scores[size_t(row)][size_t(column)], printed);
    }
    expectRow(found[1], row, weights[size_t(row)], printed);
  }
  // Token 0 sees itself alone: exactly its value. Token 2 sees everything: the mask is nothing to
  // it.
  EXPECT_EQ(rowOf(found[2], 0).data, rowOf(theoryValues, 0).data);
  EXPECT_EQ(rowOf(found[2], 2).data, rowOf(unmasked[2], 2).data);
}

/// Attention of `%x` `[T, 8]` with itself in two heads, or of one half of its width in one.
static void twoHeadsOfFourInAWidthOfEight(const Run &run) {
  Tensor64 x({3, 8});
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = std::sin(double(i * i + 1));
  auto model = [](const std::string &cut, int heads, int width) {
    std::string h = std::to_string(heads), split = "tensor<" + h + "x?x4xf32>",
                scores = "tensor<" + h + "x?x?xf32>",
                out = "tensor<?x" + std::to_string(width) + "xf32>";
    return Model{forward("%x: tensor<?x8xf32>", split + ", " + out,
                         cut + "\n%h = heddle.split_heads %y {heads = " + h + " : i64} : (" + out +
                             ") -> " + split + "\n%s = heddle.matmul %h, %h {transpose_rhs} : (" +
                             split + ", " + split + ") -> " + scores +
                             "\n%w = heddle.softmax %s : (" + scores + ") -> " + scores +
                             "\n%o = heddle.matmul %w, %h : (" + scores + ", " + split + ") -> " +
                             split + "\n%m = heddle.merge_heads %o : (" + split + ") -> " + out,
                         "%h, %m")};
  };
  auto slice = [](int start) {
    return "%y = heddle.slice %x {axis = 1 : i64, start = " + std::to_string(start) +
           " : i64, size = 4 : i64} : (tensor<?x8xf32>) -> tensor<?x4xf32>";
  };
  std::string whole = "%one = heddle.constant dense<1.0> : tensor<f32>\n"
                      "%y = heddle.binary mul %x, %one : (tensor<?x8xf32>, tensor<f32>) -> "
                      "tensor<?x8xf32>";
  Tensors both = runOnce(run, model(whole, 2, 8), {x});
  Tensors first = runOnce(run, model(slice(0), 1, 4), {x});
  Tensors second = runOnce(run, model(slice(4), 1, 4), {x});
  ASSERT_EQ(both.size() + first.size() + second.size(), 6u);
  EXPECT_EQ(both[0].shape, (Shape{2, 3, 4}));
  for (int64_t token = 0; token < 3; ++token)
    for (int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(at(both[1], token, i), at(first[1], token, i), close);
      EXPECT_NEAR(at(both[1], token, 4 + i), at(second[1], token, i), close);
    }
}

static void eightScoresOfDeviationEleven(const Run &run) {
  // Mean 0, deviation 11, each the product of a query of ones with a key of 128 entries.
  std::vector<double> scores = {3, -16, 18, 1, 3, 6, -18, 3};
  Tensor64 query({1, 128}), keys({8, 128});
  for (double &x : query.data)
    x = 1;
  for (size_t i = 0; i < keys.data.size(); ++i)
    keys.data[i] = scores[i / 128] / 128;
  std::string wide = "tensor<?x128xf32>", square = "tensor<?x?xf32>";
  Model model = {forward("%q: " + wide + ", %k: " + wide, square + ", " + square,
                         "%s = heddle.matmul %q, %k {transpose_rhs} : (" + wide + ", " + wide +
                             ") -> " + square + "\n%a = heddle.softmax %s : (" + square + ") -> " +
                             square + "\n%c = heddle.constant dense<128.0> : tensor<f32>\n" +
                             "%r = heddle.unary rsqrt %c : (tensor<f32>) -> tensor<f32>\n" +
                             "%d = heddle.binary mul %s, %r : (" + square + ", tensor<f32>) -> " +
                             square + "\n%b = heddle.softmax %d : (" + square + ") -> " + square,
                         "%a, %b")};
  Tensors found = runOnce(run, model, {query, keys});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(at(found[0], 0, 2), 0.99999, 5e-6);
  EXPECT_NEAR(at(found[1], 0, 2), 0.41, printed);
}

//===-- Rotary positions
//------------------------------------------------------------------------===//

/// Turns rows of `width` entries; `frequencies` is the text of an f64 constant.
static Model turning(const std::string &pairing, int width, const std::string &frequencies) {
  std::string type = "tensor<1x?x" + std::to_string(width) + "xf32>";
  std::string table = "tensor<" + std::to_string(width / 2) + "xf64>";
  return {forward("%x: " + type + ", %p: tensor<?xi32>", type,
                  "%f = heddle.constant dense<" + frequencies + "> : " + table +
                      "\n%y = heddle.rotate " + pairing + " %x, %p frequencies(%f) : (" + type +
                      ", tensor<?xi32>, " + table + ") -> " + type,
                  "%y")};
}

static void aQuarterTurn(const Run &run) {
  Tensors found = runOnce(run, turning("interleaved", 2, "1.5707963267948966"),
                          {Tensor64({1, 1, 2}, {1, 0}), vector({1})});
  ASSERT_EQ(found.size(), 1u);
  expectRow(found[0], 0, {0, 1}, 1e-7);
}

static void turningKeepsLength(const Run &run) {
  Tensor64 x({1, 5, 4}, {3, 4, 0, 0, 1, -1, 1, -1, 0.5, 0.25, -8, 2, 0, 0, 0, 1, 7, 1, 2, 3});
  Tensors found =
      runOnce(run, turning("half_split", 4, "[1.0, 0.01]"), {x, vector({0, 1, 17, 300, 99999})});
  ASSERT_EQ(found.size(), 1u);
  for (int64_t row = 0; row < 5; ++row) {
    double before = 0, after = 0;
    for (int64_t i = 0; i < 4; ++i) {
      before += at(x, row, i) * at(x, row, i);
      after += at(found[0], row, i) * at(found[0], row, i);
    }
    EXPECT_NEAR(after, before, 1e-6 * before);
  }
}

static void scoresDependOnTheDistance(const Run &run) {
  std::string type = "tensor<1x?x2xf32>", scores = "tensor<1x?x?xf32>";
  Model model = {
      forward("%q: " + type + ", %qp: tensor<?xi32>, %k: " + type + ", %kp: tensor<?xi32>", scores,
              "%f = heddle.constant dense<0.5> : tensor<1xf64>\n"
              "%qr = heddle.rotate interleaved %q, %qp frequencies(%f) : (" +
                  type + ", tensor<?xi32>, tensor<1xf64>) -> " + type +
                  "\n%kr = heddle.rotate interleaved %k, %kp frequencies(%f) : (" + type +
                  ", tensor<?xi32>, tensor<1xf64>) -> " + type +
                  "\n%s = heddle.matmul %qr, %kr {transpose_rhs} : (" + type + ", " + type +
                  ") -> " + scores,
              "%s")};
  auto score = [&](double queryPosition, double keyPosition) {
    Tensors found = runOnce(run, model,
                            {Tensor64({1, 1, 2}, {1, 2}), vector({queryPosition}),
                             Tensor64({1, 1, 2}, {3, 1}), vector({keyPosition})});
    return found.empty() ? NAN : found[0].data[0];
  };
  EXPECT_NEAR(score(3, 1), -1.506, 5e-4);
  EXPECT_NEAR(score(7, 5), -1.506, 5e-4);
  EXPECT_NEAR(score(3, 1), score(7, 5), close);
  EXPECT_NEAR(score(5, 7), 6.909, 5e-4);
  EXPECT_NEAR(score(0, 0), 5, close);
}

static void pairingsAreAReordering(const Run &run) {
  Tensor64 x({1, 2, 6}, {1, 2, 3, 4, 5, 6, -1, 0.5, 2, 0, 3, -2});
  Tensor64 reordered = x;
  auto place = [](int64_t i) { return i % 2 * 3 + i / 2; }; // pair (2i, 2i+1) to (i, i+3)
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < 6; ++i)
      reordered.data[size_t(row * 6 + place(i))] = at(x, row, i);
  std::string frequencies = "[1.0, 0.1, 0.01]";
  Tensors pairs = runOnce(run, turning("interleaved", 6, frequencies), {x, vector({4, 9})});
  Tensors halves = runOnce(run, turning("half_split", 6, frequencies), {reordered, vector({4, 9})});
  ASSERT_EQ(pairs.size() + halves.size(), 2u);
  for (int64_t row = 0; row < 2; ++row)
    for (int64_t i = 0; i < 6; ++i)
      EXPECT_NEAR(at(pairs[0], row, i), at(halves[0], row, place(i)), close);
}

//===-- Heads and gates
//-------------------------------------------------------------------------===//

static void queryHeadThirteenUsesHeadThree(const Run &run) {
  Model model = {forward("%x: tensor<8x?x2xf32>", "tensor<32x?x2xf32>",
                         "%y = heddle.gather_heads %x {heads = 32 : i64} : (tensor<8x?x2xf32>) -> "
                         "tensor<32x?x2xf32>",
                         "%y")};
  Tensor64 x({8, 1, 2});
  for (size_t i = 0; i < x.data.size(); ++i)
    x.data[i] = double(i / 2);
  Tensors found = runOnce(run, model, {x});
  ASSERT_EQ(found.size(), 1u);
  expectRow(found[0], 13, {3, 3}, 0);
  for (int64_t head = 0; head < 32; ++head)
    EXPECT_EQ(at(found[0], head, 0), double(head / 4));
}

static void fewerKeyHeadsMakeASmallerCache(const Run &run) {
  auto cached = [&](int heads) -> int64_t {
    std::string h = std::to_string(heads), cache = "!heddle.cache<1 x " + h + ", 2, 2, f32>";
    std::string wide = "tensor<?x" + std::to_string(heads * 2) + "xf32>";
    std::string split = "tensor<" + h + "x?x2xf32>";
    Model model = {forward("%x: " + wide + ", %rows: !heddle.sequences, %c: " + cache,
                           split + ", " + split + ", " + cache,
                           "%k = heddle.split_heads %x {heads = " + h + " : i64} : (" + wide +
                               ") -> " + split +
                               "\n%c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %k, %rows "
                               "{layer = 0 : i64} : (" +
                               cache + ", " + split + ", " + split + ", !heddle.sequences) -> (" +
                               cache + ", " + split + ", " + split + ", !heddle.sequences)",
                           "%ks, %vs, %c1")};
    Tensors found = runOnce(run, model, {Tensor64({3, heads * 2}), Batch::single(3)});
    return found.empty() ? -1 : found[0].size() + found[1].size();
  };
  EXPECT_EQ(cached(32), 4 * cached(8));
}

static void aGateOfZeroShutsTheEntryOff(const Run &run) {
  std::string type = "tensor<?xf32>";
  Model model = {forward("%gate: " + type + ", %up: " + type, type,
                         "%a = heddle.unary silu %gate : (" + type + ") -> " + type +
                             "\n%y = heddle.binary mul %a, %up : (" + type + ", " + type + ") -> " +
                             type,
                         "%y")};
  Tensors found = runOnce(run, model, {vector({2, 0}), vector({0.5, 123456})});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NEAR(found[0].data[0], 0.88, printed);
  EXPECT_EQ(found[0].data[1], 0);
}

//===-- Whole models
//----------------------------------------------------------------------------===//

static Tensor64 ids(const std::vector<int> &tokens) {
  return vector(std::vector<double>(tokens.begin(), tokens.end()));
}

static void withoutPositionsOrderIsInvisible(const Run &run) {
  Model model = tinyModel({.rotary = false, .causal = false});
  std::vector<int> tokens = {3, 1, 4, 0, 5}, order = {2, 4, 0, 3, 1}, shuffled;
  for (int from : order)
    shuffled.push_back(tokens[size_t(from)]);
  Tensors straight = runOnce(run, model, {ids(tokens), Batch::single(5)});
  Tensors mixed = runOnce(run, model, {ids(shuffled), Batch::single(5)});
  ASSERT_EQ(straight.size() + mixed.size(), 2u);
  for (size_t i = 0; i < order.size(); ++i)
    expectNear(rowOf(mixed[0], int64_t(i)), rowOf(straight[0], order[i]), 2e-5, "shuffled token");
}

static const std::vector<int> sentence = {3, 1, 4, 1, 5, 2, 6};

static void onePassGivesAllPredictions(const Run &run) {
  Model model = tinyModel({});
  Tensors all = runOnce(run, model, {ids(sentence), Batch::single(int32_t(sentence.size()))});
  ASSERT_EQ(all.size(), 1u);
  for (size_t length = 1; length <= sentence.size(); ++length) {
    std::vector<int> prefix(sentence.begin(), sentence.begin() + long(length));
    Tensors last =
        runOnce(run, model, {ids(prefix), Batch::single(int32_t(length)).withLastRows()});
    ASSERT_EQ(last.size(), 1u);
    ASSERT_EQ(last[0].dim(0), 1);
    expectNear(rowOf(last[0], 0), rowOf(all[0], int64_t(length) - 1), 2e-5, "prefix");
  }
}

static void chunksAndStepsGiveWhatOneCallGives(const Run &run) {
  Model model = tinyModel({});
  Tensors all = runOnce(run, model, {ids(sentence), Batch::single(int32_t(sentence.size()))});
  ASSERT_EQ(all.size(), 1u);
  std::vector<Call> chunks;
  int32_t position = 0;
  for (int32_t length : {3, 1, 1, 2}) {
    auto first = sentence.begin() + position;
    chunks.push_back({ids({first, first + length}), Batch::single(length, position)});
    position += length;
  }
  Result<std::vector<Tensors>> found = run(model, chunks);
  ASSERT_TRUE(found) << found.error().message;
  int64_t row = 0;
  for (const Tensors &chunk : *found)
    for (int64_t i = 0; i < chunk[0].dim(0); ++i)
      expectNear(rowOf(chunk[0], i), rowOf(all[0], row++), 2e-5, "chunk");
  EXPECT_EQ(row, int64_t(sentence.size()));
}

static void sequencesOfOneCallDoNotMeet(const Run &run) {
  Model model = tinyModel({});
  model.slots = 2;
  std::vector<int> other = {6, 6, 0};
  Tensors first = runOnce(run, model, {ids(sentence), Batch::single(7).withLastRows()});
  Tensors second = runOnce(run, model, {ids(other), Batch::single(3).withLastRows()});
  std::vector<int> together = other;
  together.insert(together.end(), sentence.begin(), sentence.end());
  Tensors both =
      runOnce(run, model, {ids(together), Batch{{{0, 3, 0, 1}, {3, 7, 0, 0}}, {}}.withLastRows()});
  ASSERT_EQ(first.size() + second.size() + both.size(), 3u);
  expectNear(rowOf(both[0], 0), rowOf(second[0], 0), 2e-5, "first sequence");
  expectNear(rowOf(both[0], 1), rowOf(first[0], 0), 2e-5, "second sequence");
}

std::span<const Example> workedExamples() {
  static constexpr Example examples[] = {
      {"AttentionOfThreeTokens", attentionOfThreeTokens},
      {"CausalAttentionOfThreeTokens", causalAttentionOfThreeTokens},
      {"TwoHeadsOfFourInAWidthOfEight", twoHeadsOfFourInAWidthOfEight},
      {"EightScoresOfDeviationEleven", eightScoresOfDeviationEleven},
      {"AQuarterTurn", aQuarterTurn},
      {"TurningKeepsLength", turningKeepsLength},
      {"ScoresDependOnTheDistance", scoresDependOnTheDistance},
      {"PairingsAreAReordering", pairingsAreAReordering},
      {"QueryHeadThirteenUsesHeadThree", queryHeadThirteenUsesHeadThree},
      {"FewerKeyHeadsMakeASmallerCache", fewerKeyHeadsMakeASmallerCache},
      {"AGateOfZeroShutsTheEntryOff", aGateOfZeroShutsTheEntryOff},
      {"WithoutPositionsOrderIsInvisible", withoutPositionsOrderIsInvisible},
      {"OnePassGivesAllPredictions", onePassGivesAllPredictions},
      {"ChunksAndStepsGiveWhatOneCallGives", chunksAndStepsGiveWhatOneCallGives},
      {"SequencesOfOneCallDoNotMeet", sequencesOfOneCallDoNotMeet},
  };
  return examples;
}

} // namespace heddle::test
