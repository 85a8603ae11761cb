// Rotary positions, masks, and the cache.
#include "tests/unit/cases/cases.h"

#include <limits>
#include <numbers>

namespace heddle::test {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
static constexpr double inf = std::numeric_limits<double>::infinity();

/// One head of `width` entries at the given positions; `table` are frequencies or none.
static OpCase rotate(std::string name, const std::string &pairing, int width,
                     const std::string &attributes, std::vector<double> in,
                     std::vector<double> positions, std::vector<double> out,
                     const std::string &table = "") {
  std::string type = "tensor<1x?x" + std::to_string(width) + "xf32>";
  int64_t rows = int64_t(positions.size());
  std::string frequencies, frequencyType, constant;
  if (!table.empty()) {
    frequencies = " frequencies(%f)";
    frequencyType = ", tensor<1xf64>";
    constant = "%f = heddle.constant dense<" + table + "> : tensor<1xf64>\n";
  }
  return simpleCase("rotate_" + name,
                    forward("%x: " + type + ", %p: tensor<?xi32>", type,
                            constant + "%y = heddle.rotate " + pairing + " %x, %p" + frequencies +
                                " {" + attributes + "} : (" + type + ", tensor<?xi32>" +
                                frequencyType + ") -> " + type,
                            "%y"),
                    {Tensor64({1, rows, width}, std::move(in)), vector(std::move(positions))},
                    Tensor64({1, rows, width}, std::move(out)));
}

static std::vector<OpCase> rotateCases() {
  // With base 10000 and four dimensions the frequencies are 1 and 0.01.
  std::string base = "base = 1.0e+04 : f64";
  return {
      rotate("interleaved", "interleaved", 4, base, {1, 0, 0, 1}, {3},
             {-0.9899924966004454, 0.1411200080598672, -0.02999550020249566, 0.9995500337489875}),
      rotate("half_split", "half_split", 4, base, {1, 0, 0, 1}, {3},
             {-0.9899924966004454, -0.02999550020249566, 0.1411200080598672, 0.9995500337489875}),
      rotate("position_0_is_still", "half_split", 2, base, {1, 2, 1, 0}, {0, 0}, {1, 2, 1, 0}),
      rotate("some_entries", "interleaved", 3, base + ", dims = 2 : i64", {1, 2, 3}, {2},
             {-2.234741690198506, 0.0770037537313969, 3}),
      rotate("frequencies_and_magnitude", "interleaved", 2, "magnitude = 1.5 : f64", {1, 2}, {2},
             {-0.12190277297704988, 3.351885993577423}, "0.25"),
      // A million radians: the reduction of the angle has to be exact.
      rotate("far_away", "interleaved", 4, base, {1, 0, 1, 0}, {1000000},
             {0.9367521275331447, -0.34999350217129294, -0.9521553682590148, -0.30561438888825215}),
  };
}

//===-- Masks
//-----------------------------------------------------------------------------------===//

/// Scores `[1, T, S]`, without a description of rows.
static OpCase plainMask(std::string name, const std::string &attributes, Shape shape,
                        std::vector<double> in, std::vector<double> out) {
  std::string type = "tensor<1x?x?xf32>";
  return simpleCase("mask_" + name,
                    forward("%s: " + type, type,
                            "%y = heddle.mask %s {" + attributes + "} : (" + type + ") -> " + type,
                            "%y"),
                    {Tensor64(shape, std::move(in))}, Tensor64(shape, std::move(out)));
}

/// Scores that are all 0, of the rows of a batch with themselves.
static OpCase rowMask(std::string name, const std::string &attributes, Batch batch, int64_t tokens,
                      std::vector<double> out) {
  std::string text =
      forward("%x: tensor<?x1xf32>, %rows: !heddle.sequences", "tensor<?x?xf32>",
              "%s = heddle.matmul %x, %x {transpose_rhs} : (tensor<?x1xf32>, tensor<?x1xf32>) -> "
              "tensor<?x?xf32>\n"
              "%y = heddle.mask %s queries(%rows) keys(%rows) {" +
                  attributes +
                  "} : (tensor<?x?xf32>, !heddle.sequences, !heddle.sequences) -> tensor<?x?xf32>",
              "%y");
  return simpleCase("mask_" + name, text, {Tensor64({tokens, 1}), std::move(batch)},
                    Tensor64({tokens, tokens}, std::move(out)));
}

static std::vector<OpCase> maskCases() {
  OpCase tensor =
      simpleCase("mask_tensor",
                 forward("%s: tensor<2x?x?xf32>, %m: tensor<?x?xi1>", "tensor<2x?x?xf32>",
                         "%y = heddle.mask %s mask(%m) : (tensor<2x?x?xf32>, tensor<?x?xi1>) -> "
                         "tensor<2x?x?xf32>",
                         "%y"),
                 {Tensor64({2, 1, 3}, {1, 2, nan, 4, nan, 6}), Tensor64({1, 3}, {1, 1, 0})},
                 Tensor64({2, 1, 3}, {1, 2, -inf, 4, nan, -inf}));
  // Two queries at positions 2 and 3 meet four keys.
  OpCase fewer = simpleCase(
      "mask_fewer_queries_than_keys",
      forward("%q: tensor<?x1xf32>, %rows: !heddle.sequences, %k: tensor<?x1xf32>",
              "tensor<?x?xf32>",
              "%s = heddle.matmul %q, %k {transpose_rhs} : (tensor<?x1xf32>, tensor<?x1xf32>) -> "
              "tensor<?x?xf32>\n"
              "%y = heddle.mask %s queries(%rows) {causal} : (tensor<?x?xf32>, "
              "!heddle.sequences) -> tensor<?x?xf32>",
              "%y"),
      {Tensor64({2, 1}, {1, 2}), Batch::single(2, 2), Tensor64({4, 1}, {1, 2, 3, 4})},
      Tensor64({2, 4}, {1, 2, 3, -inf, 2, 4, 6, 8}));
  // Queries and keys of different batches meet sequence by sequence: two targets and their sources.
  OpCase cross = simpleCase(
      "mask_across_batches",
      forward("%q: tensor<?x1xf32>, %rows: !heddle.sequences, %k: tensor<?x1xf32>, %sources: "
              "!heddle.sequences",
              "tensor<?x?xf32>",
              "%s = heddle.matmul %q, %k {transpose_rhs} : (tensor<?x1xf32>, tensor<?x1xf32>) -> "
              "tensor<?x?xf32>\n"
              "%y = heddle.mask %s queries(%rows) keys(%sources) : (tensor<?x?xf32>, "
              "!heddle.sequences, !heddle.sequences) -> tensor<?x?xf32>",
              "%y"),
      {Tensor64({3, 1}, {1, 2, 3}), Batch{{{0, 2, 7, 0}, {2, 1, 0, 1}}, {}},
       Tensor64({3, 1}, {1, 2, 3}), Batch{{{0, 1, 0, 0}, {1, 2, 0, 1}}, {}}},
      Tensor64({3, 3}, {1, -inf, -inf, 2, -inf, -inf, -inf, 6, 9}));
  Batch two = {{{0, 2, 0, 0}, {2, 1, 5, 1}}, {}};
  double h = -inf;
  return {
      plainMask("causal", "causal", {1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9},
                {1, h, h, 4, 5, h, 7, 8, 9}),
      plainMask("hides_nan", "causal", {1, 2, 2}, {1, nan, nan, 4}, {1, h, nan, 4}),
      plainMask("window", "causal, window = 2 : i64", {1, 4, 4}, std::vector<double>(16),
                {0, h, h, h, 0, 0, h, h, h, 0, 0, h, h, h, 0, 0}),
      plainMask("window_of_1", "window = 1 : i64", {1, 2, 2}, std::vector<double>(4), {0, h, h, 0}),
      plainMask("prefix", "causal, prefix = 2 : i64", {1, 4, 4}, std::vector<double>(16),
                {0, 0, h, h, 0, 0, h, h, 0, 0, 0, h, 0, 0, 0, 0}),
      plainMask("of_nothing", "", {1, 2, 2}, {1, 2, 3, 4}, {1, 2, 3, 4}),
      rowMask("sequences", "", two, 3, {0, 0, h, 0, 0, h, h, h, 0}),
      rowMask("sequences_causal", "causal", two, 3, {0, h, h, 0, 0, h, h, h, 0}),
      tensor,
      fewer,
      cross,
  };
}

//===-- The cache
//-------------------------------------------------------------------------------===//

/// `values`, then zeros up to a multiple of 16: what the cache gives of one sequence.
static std::vector<double> block(std::vector<double> values) {
  values.resize((values.size() + 15) / 16 * 16, 0.0);
  return values;
}

static Tensor64 view(const std::vector<std::vector<double>> &sequences) {
  Tensor64 tensor({1, 0, 1});
  for (const std::vector<double> &values : sequences)
    for (double value : block(values))
      tensor.data.push_back(value);
  tensor.shape[1] = int64_t(tensor.data.size());
  return tensor;
}

static std::vector<OpCase> cacheCases() {
  std::string cache = "!heddle.cache<2 x 1, 1, 1, f32>", heads = "tensor<1x?x1xf32>";
  std::string operands = "(" + cache + ", " + heads + ", " + heads + ", !heddle.sequences) -> (" +
                         cache + ", " + heads + ", " + heads + ", !heddle.sequences)";
  OpCase append;
  append.name = "cache_append";
  append.model.slots = 2;
  append.model.text = forward(
      "%x: tensor<?x1xf32>, %rows: !heddle.sequences, %c: " + cache,
      heads + ", " + heads + ", " + heads + ", " + cache,
      "%k = heddle.split_heads %x {heads = 1 : i64} : (tensor<?x1xf32>) -> " + heads +
          "\n%v = heddle.unary neg %k : (" + heads + ") -> " + heads +
          "\n%c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %v, %rows {layer = 0 : i64} : " +
          operands +
          // Another layer holds other keys.
          "\n%c2, %ls, %us, %lr = heddle.cache_append %c1, %v, %k, %rows {layer = 1 : i64} : " +
          operands,
      "%ks, %vs, %ls, %c2");
  auto expect = [&](Batch batch, std::vector<double> x,
                    const std::vector<std::vector<double>> &keys) {
    append.calls.push_back({Tensor64({int64_t(x.size()), 1}, x), std::move(batch)});
    Tensor64 all = view(keys), negative = all;
    for (double &value : negative.data)
      value = -value;
    append.expected.push_back({all, negative, negative});
  };
  expect({{{0, 3, 0, 0}, {3, 1, 0, 1}}, {}}, {1, 2, 3, 9}, {{1, 2, 3}, {9}});
  expect({{{0, 1, 1, 1}}, {}}, {8}, {{9, 8}});
  expect({{{0, 1, 2, 1}, {1, 2, 3, 0}}, {}}, {7, 4, 5}, {{9, 8, 7}, {1, 2, 3, 4, 5}});
  // Back to position 1: what lay beyond is forgotten.
  expect({{{0, 1, 1, 0}}, {}}, {20}, {{1, 20}});
  std::vector<double> many = {1, 20};
  for (int i = 2; i < 19; ++i)
    many.push_back(i);
  expect({{{0, 17, 2, 0}}, {}}, {many.begin() + 2, many.end()}, {many});

  // Unwritten rows belong to no sequence: no query sees them.
  std::string scores = "tensor<1x?x?xf32>";
  OpCase rows = simpleCase(
      "cache_append_rows",
      forward("%x: tensor<?x1xf32>, %rows: !heddle.sequences, %c: " + cache, scores + ", " + cache,
              "%k = heddle.split_heads %x {heads = 1 : i64} : (tensor<?x1xf32>) -> " + heads +
                  "\n%c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %k, %rows {layer = 0 : i64} "
                  ": " +
                  operands + "\n%s = heddle.matmul %k, %ks {transpose_rhs} : (" + heads + ", " +
                  heads + ") -> " + scores +
                  "\n%m = heddle.mask %s queries(%rows) keys(%kr) {causal} : (" + scores +
                  ", !heddle.sequences, !heddle.sequences) -> " + scores,
              "%m, %c1"),
      {Tensor64({3, 1}, {1, 2, 3}), Batch{{{0, 2, 0, 0}, {2, 1, 0, 1}}, {}}}, {});
  rows.model.slots = 2;
  Tensor64 seen({1, 3, 32});
  for (double &score : seen.data)
    score = -inf;
  seen.data[0] = 1;       // row 0 sees its own key 1,
  seen.data[32] = 2;      // row 1 sees keys 1
  seen.data[33] = 4;      // and 2,
  seen.data[64 + 16] = 9; // row 2 its own key 3, 16 rows on.
  rows.expected = {{seen}};

  // A bf16 cache gives bf16 back; these values it holds exactly.
  std::string half = "!heddle.cache<1 x 1, 1, 1, bf16>", halves = "tensor<1x?x1xbf16>";
  OpCase bf16 = simpleCase(
      "cache_append_bf16",
      forward("%x: tensor<?x1xf32>, %rows: !heddle.sequences, %c: " + half, heads + ", " + half,
              "%k = heddle.split_heads %x {heads = 1 : i64} : (tensor<?x1xf32>) -> " + heads +
                  "\n%c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %k, %rows {layer = 0 : i64} "
                  ": (" +
                  half + ", " + heads + ", " + heads + ", !heddle.sequences) -> (" + half + ", " +
                  halves + ", " + halves + ", !heddle.sequences)\n" +
                  "%y = heddle.cast %ks to f32 : (" + halves + ") -> " + heads,
              "%y, %c1"),
      {Tensor64({3, 1}, {1.5, -0.25, 96}), Batch::single(3)}, view({{1.5, -0.25, 96}}));

  // What f16 and int8 hold comes back in f32. In int8 every key has a scale of its own.
  auto widened = [&](const std::string &name, const std::string &element, int64_t width,
                     std::vector<double> x, std::vector<double> expected) {
    std::string cache = "!heddle.cache<1 x 1, " + std::to_string(width) + ", " +
                        std::to_string(width) + ", " + element + ">";
    std::string rows = "tensor<?x" + std::to_string(width) + "xf32>",
                heads = "tensor<1x?x" + std::to_string(width) + "xf32>";
    int64_t tokens = int64_t(x.size()) / width;
    expected.resize(size_t(16 * width), 0.0);
    Tensor64 all({1, 16, width}, expected);
    OpCase test = simpleCase(
        name,
        forward(
            "%x: " + rows + ", %rows: !heddle.sequences, %c: " + cache,
            heads + ", " + heads + ", " + cache,
            "%k = heddle.split_heads %x {heads = 1 : i64} : (" + rows + ") -> " + heads +
                "\n%c1, %ks, %vs, %kr = heddle.cache_append %c, %k, %k, %rows {layer = 0 : i64} "
                ": (" +
                cache + ", " + heads + ", " + heads + ", !heddle.sequences) -> (" + cache + ", " +
                heads + ", " + heads + ", !heddle.sequences)\n",
            "%ks, %vs, %c1"),
        {Tensor64({tokens, width}, std::move(x)), Batch::single(int32_t(tokens))}, all);
    test.expected[0].push_back(all);
    return test;
  };
  std::vector<double> halfValues = {65504, 0x1p-24, -0.25, inf, 1 + 0x1p-10, -0x1p-14};
  std::vector<double> bytes = {127, -3, 0, 0.5, -63.5, 1, 0, 0, 0, 0x1p20 * 127, 0, -0x1p20};
  return {append, rows, bf16, widened("cache_append_f16", "f16", 3, halfValues, halfValues),
          widened("cache_append_int8", "!heddle.blocks<int8>", 3, bytes, bytes)};
}

std::vector<OpCase> attentionCases() {
  std::vector<OpCase> all = rotateCases();
  for (auto cases : {maskCases, cacheCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

} // namespace heddle::test
