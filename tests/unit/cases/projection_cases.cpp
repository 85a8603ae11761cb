// What fusion makes of rotations and of the products that feed attention.
#include "tests/unit/cases/cases.h"

namespace heddle::test {

/// The table of positions 0 and 3 for frequencies 1 and 0.5, and the head (1, 2, 3, 4, 5) that it
/// turns; the last entry passes.
static OpCase turn(const std::string &pairing, std::vector<double> table,
                   std::vector<double> turned) {
  OpCase test = simpleCase(
      "turn_" + pairing,
      forward("%x: tensor<1x?x5xf32>, %p: tensor<?xi32>", "tensor<?x2x4xf32>, tensor<1x?x5xf32>",
              "%f = heddle.constant dense<[1.0, 0.5]> : tensor<2xf64>\n%t = heddle.rotary_table " +
                  pairing +
                  " %p frequencies(%f) : (tensor<?xi32>, tensor<2xf64>) -> tensor<?x2x4xf32>\n"
                  "%y = heddle.turn " +
                  pairing + " %x, %t : (tensor<1x?x5xf32>, tensor<?x2x4xf32>) -> tensor<1x?x5xf32>",
              "%t, %y"),
      {Tensor64({1, 2, 5}, {1, 2, 3, 4, 5, 1, 2, 3, 4, 5}), vector({0, 3})},
      Tensor64({2, 2, 4}, std::move(table)));
  turned.insert(turned.begin(), {1, 2, 3, 4, 5}); // position 0 is still
  test.expected[0].push_back(Tensor64({1, 2, 5}, std::move(turned)));
  return test;
}

/// One head of queries and keys of width 2 and of values of width 1; `more` stands before the cache
/// and has the types `moreTypes`. Rows (1, 2) and (3, 4) give the values 3 and 7, and the bias.
static OpCase project(std::string name, const std::string &more, const std::string &moreTypes,
                      const std::string &attributes, std::vector<double> queries,
                      std::vector<double> keys, std::vector<double> values) {
  std::string cache = "!heddle.cache<1 x 1, 2, 1, f32>", two = "tensor<1x?x2xf32>",
              one = "tensor<1x?x1xf32>";
  OpCase test = simpleCase(
      "project_heads_" + name,
      forward("%x: tensor<?x2xf32>, %rows: !heddle.sequences, %c: " + cache,
              two + ", " + two + ", " + one + ", " + cache,
              R"(%wq = heddle.weight @q : tensor<2x2xf32>
                 %wk = heddle.weight @k : tensor<2x2xf32>
                 %wv = heddle.weight @v : tensor<1x2xf32>
                 %bq = heddle.constant dense<[0.0, 1.0]> : tensor<2xf32>
                 %bk = heddle.constant dense<0.0> : tensor<2xf32>
                 %bv = heddle.constant dense<10.0> : tensor<1xf32>
                 %p = heddle.positions %rows : (!heddle.sequences) -> tensor<?xi32>
                 %t = heddle.rotary_table half_split %p {base = 1.0e+04 : f64} : (tensor<?xi32>) -> tensor<?x2x2xf32>
                 %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %wq, %wk, %wv )" +
                  more + " cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs" + attributes +
                  "} : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<1x2xf32>" +
                  moreTypes + ", " + cache + ", !heddle.sequences) -> (" + two + ", " + cache +
                  ", " + two + ", " + one + ", !heddle.sequences)",
              "%y, %ks, %vs, %c1",
              "heddle.param @q : tensor<2x2xf32>\nheddle.param @k : tensor<2x2xf32>\n"
              "heddle.param @v : tensor<1x2xf32>"),
      {Tensor64({2, 2}, {1, 2, 3, 4}), Batch::single(2)}, Tensor64({1, 2, 2}, std::move(queries)));
  test.model.params = {{"q", Tensor64({2, 2}, {1, 0, 0, 1})},
                       {"k", Tensor64({2, 2}, {2, 0, 0, 1})},
                       {"v", Tensor64({1, 2}, {1, 1})}};
  keys.resize(32); // what the cache gives is whole blocks
  values.resize(16);
  test.expected[0].push_back(Tensor64({1, 16, 2}, std::move(keys)));
  test.expected[0].push_back(Tensor64({1, 16, 1}, std::move(values)));
  return test;
}

/// Two query heads over one of keys, all of width 64, so that their products have tiles of one
/// shape, and one head of values. Weight n of each is n + 1 times the first entry of the input, the
/// second, or both.
static OpCase projectAlike(const std::string &name, int64_t valueWidth) {
  std::string width = std::to_string(valueWidth);
  std::string cache = "!heddle.cache<1 x 1, 64, " + width + ", f32>",
              keyType = "tensor<1x?x64xf32>", valueType = "tensor<1x?x" + width + "xf32>",
              two = "tensor<2x?x64xf32>", valueWeight = "tensor<" + width + "x2xf32>";
  OpCase test =
      simpleCase("project_heads_" + name,
                 forward("%x: tensor<?x2xf32>, %rows: !heddle.sequences, %c: " + cache,
                         two + ", " + keyType + ", " + valueType + ", " + cache,
                         R"(%wq = heddle.weight @q : tensor<128x2xf32>
             %wk = heddle.weight @k : tensor<64x2xf32>
             %wv = heddle.weight @v : )" +
                             valueWeight + R"(
             %y, %c1, %ks, %vs, %kr = heddle.project_heads %x, %wq, %wk, %wv cache(%c) rows(%rows) {layer = 0 : i64, transpose_rhs} : (tensor<?x2xf32>, tensor<128x2xf32>, tensor<64x2xf32>, )" +
                             valueWeight + ", " + cache + ", !heddle.sequences) -> (" + two + ", " +
                             cache + ", " + keyType + ", " + valueType + ", !heddle.sequences)",
                         "%y, %ks, %vs, %c1",
                         "heddle.param @q : tensor<128x2xf32>\nheddle.param @k : tensor<64x2xf32>\n"
                         "heddle.param @v : " +
                             valueWeight),
                 {Tensor64({2, 2}, {1, 10, 2, 30}), Batch::single(2)}, Tensor64({2, 2, 64}));
  auto weight = [](int64_t rows, double first, double second) {
    Tensor64 tensor({rows, 2});
    for (int64_t n = 0; n < rows; ++n) {
      tensor.data[size_t(2 * n)] = first * double(n + 1);
      tensor.data[size_t(2 * n + 1)] = second * double(n + 1);
    }
    return tensor;
  };
  test.model.params = {
      {"q", weight(128, 1, 0)}, {"k", weight(64, 0, 1)}, {"v", weight(valueWidth, 1, 1)}};
  Tensor64 keys({1, 16, 64}), values({1, 16, valueWidth}), &queries = test.expected[0][0];
  for (size_t row = 0; row < 2; ++row)
    for (size_t n = 0; n < 64; ++n) {
      double first = row == 0 ? 1 : 2, second = row == 0 ? 10 : 30;
      queries.data[row * 64 + n] = double(n + 1) * first;
      queries.data[(2 + row) * 64 + n] = double(n + 65) * first;
      keys.data[row * 64 + n] = double(n + 1) * second;
      if (n < size_t(valueWidth))
        values.data[row * size_t(valueWidth) + n] = double(n + 1) * (first + second);
    }
  test.expected[0].push_back(keys);
  test.expected[0].push_back(values);
  return test;
}

std::vector<OpCase> projectionCases() {
  double c1 = -0.9899924966004454, s1 = 0.1411200080598672; // of 3
  double c2 = 0.0707372016677029, s2 = 0.9974949866040544;  // of 1.5
  return {
      turn("interleaved", {1, 1, 1, 1, 0, 0, 0, 0, c1, c1, c2, c2, -s1, s1, -s2, s2},
           {-1.27223251272018, -1.8388649851410237, -3.777768341413109, 3.275433766482975, 5}),
      turn("half_split", {1, 1, 1, 1, 0, 0, 0, 0, c1, c2, c1, c2, -s1, -s2, s1, s2},
           {-1.413352520780047, -3.848505543080812, -2.828857481741469, 2.2779387798789204, 5}),
      projectAlike("alike", 64),
      projectAlike("alike_but_values", 32),
      project("alone", "", "", "", {1, 2, 3, 4}, {2, 2, 6, 4}, {3, 7}),
      // Position 1 turns by an angle of 1.
      project("biased_and_turned", "biases(%bq, %bk, %bv) table(%t)",
              ", tensor<2xf32>, tensor<2xf32>, tensor<1xf32>, tensor<?x2x2xf32>",
              ", pairing = #heddle.pairing<half_split>",
              {1, 3, -2.5864480064350635, 5.225924483764388},
              {2, 2, -0.12407010402274743, 7.210035132319938}, {13, 17}),
  };
}

} // namespace heddle::test
