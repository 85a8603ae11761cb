// What fusion makes: operations with regions.
#include "tests/unit/cases/cases.h"

#include <limits>

namespace heddle::test {

static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

static std::vector<OpCase> mapCases() {
  OpCase map = simpleCase(
      "map",
      forward("%a: tensor<?x2xf32>, %b: tensor<2xf32>", "tensor<?x2xf32>",
              R"(%y = heddle.map (%a, %b) : (tensor<?x2xf32>, tensor<2xf32>) -> tensor<?x2xf32> {
                 ^bb0(%x: f32, %w: f32):
                   %m = arith.mulf %x, %w : f32
                   %c = arith.constant 0.5 : f32
                   %s = arith.addf %m, %c : f32
                   heddle.yield %s : f32
                 })",
              "%y"),
      {Tensor64({2, 2}, {1, 2, 3, nan}), vector({10, -1})},
      Tensor64({2, 2}, {10.5, -1.5, 30.5, nan}));
  OpCase ids = simpleCase(
      "map_of_ids",
      forward("%a: tensor<?xi32>, %b: tensor<?xf32>", "tensor<?xf32>",
              R"(%y = heddle.map (%a, %b) : (tensor<?xi32>, tensor<?xf32>) -> tensor<?xf32> {
                 ^bb0(%i: i32, %x: f32):
                   %two = arith.constant 2 : i32
                   %zero = arith.constant 0.0 : f32
                   %c = arith.cmpi slt, %i, %two : i32
                   %f = arith.sitofp %i : i32 to f32
                   %s = arith.addf %f, %x : f32
                   %r = arith.select %c, %s, %zero : f32
                   heddle.yield %r : f32
                 })",
              "%y"),
      {vector({-1, 1, 2}), vector({0.25, 0.5, 7})}, vector({-0.75, 1.5, 0}));
  return {map, ids};
}

static std::vector<OpCase> linearCases() {
  OpCase linear =
      simpleCase("linear",
                 forward("%x: tensor<?x2xf32>, %r: tensor<?x3xf32>", "tensor<?x3xf32>",
                         R"(%w = heddle.weight @w : tensor<3x2xf32>
                 %y = heddle.linear %x, %w (%r) {transpose_rhs} : (tensor<?x2xf32>, tensor<3x2xf32>, tensor<?x3xf32>) -> tensor<?x3xf32> {
                 ^bb0(%p: f32, %e: f32):
                   %s = arith.addf %p, %e : f32
                   heddle.yield %s : f32
                 })",
                         "%y", "heddle.param @w : tensor<3x2xf32>"),
                 {Tensor64({2, 2}, {1, 2, 3, -1}), Tensor64({2, 3}, {100, 200, 300, 0, 0, 1})},
                 Tensor64({2, 3}, {105, 211, 317, 1, 5, 10}));
  linear.model.params = {{"w", Tensor64({3, 2}, {1, 2, 3, 4, 5, 6})}};
  OpCase gated = simpleCase(
      "gated_linear",
      forward("%x: tensor<?x2xf32>", "tensor<?x2xf32>",
              R"(%g = heddle.weight @g : tensor<2x2xf32>
                 %u = heddle.weight @u : tensor<2x2xf32>
                 %s = heddle.constant dense<[1.0, 2.0]> : tensor<2xf32>
                 %y = heddle.gated_linear %x, %g, %u (%s) : (tensor<?x2xf32>, tensor<2x2xf32>, tensor<2x2xf32>, tensor<2xf32>) -> tensor<?x2xf32> {
                 ^bb0(%p: f32, %q: f32, %e: f32):
                   %zero = arith.constant 0.0 : f32
                   %a = arith.maximumf %p, %zero : f32
                   %m = arith.mulf %a, %q : f32
                   %r = arith.mulf %m, %e : f32
                   heddle.yield %r : f32
                 })",
              "%y", "heddle.param @g : tensor<2x2xf32>\nheddle.param @u : tensor<2x2xf32>"),
      {Tensor64({1, 2}, {1, 2})}, Tensor64({1, 2}, {0, 70}));
  // x g = (-1, 7), x u = (4, 5).
  gated.model.params = {{"g", Tensor64({2, 2}, {1, 1, -1, 3})},
                        {"u", Tensor64({2, 2}, {2, 1, 1, 2})}};
  // All scales are 1: what is rounded are whole numbers.
  OpCase quantised = simpleCase(
      "quantise",
      forward("%x: tensor<?x4xf32>", "tensor<?x2xf32>",
              R"(%w = heddle.weight @w : tensor<2x4x!heddle.blocks<q8_0>>
                 %q = heddle.quantise %x : (tensor<?x4xf32>) -> tensor<?x4x!heddle.blocks<row32>>
                 %y = heddle.linear %q, %w {transpose_rhs} : (tensor<?x4x!heddle.blocks<row32>>, tensor<2x4x!heddle.blocks<q8_0>>) -> tensor<?x2xf32> {
                 ^bb0(%p: f32):
                   heddle.yield %p : f32
                 })",
              "%y", "heddle.param @w : tensor<2x4x!heddle.blocks<q8_0>>"),
      {Tensor64({2, 4}, {127, 0, -64.25, 0.5, -127, 1.5, 0, 2})},
      Tensor64({2, 2}, {127 * 127 - 64 * 2, -127 * 127, -127 * 127 + 2 - 6, 127 * 127 + 128}));
  quantised.model.params = {{"w", Tensor64({2, 4}, {127, 1, 2, -3, -127, 0, 0, 64})}};
  return {linear, gated, quantised};
}

/// Two query heads of width 1 over one key/value head with keys 1, -1, 2 and values (1, 0), (0, 1),
/// (2, 2); scores are halved. `mask` stands between the operands and the attributes.
static OpCase attention(std::string name, const std::string &moreArguments, const std::string &mask,
                        const std::string &moreTypes, Call arguments,
                        std::vector<double> expected) {
  int64_t tokens = std::get<Tensor64>(arguments[0]).dim(0);
  OpCase test = simpleCase(
      std::move(name),
      forward("%x: tensor<?x2xf32>, " + moreArguments +
                  "%k: tensor<1x?x1xf32>, %v: tensor<1x?x2xf32>",
              "tensor<2x?x2xf32>",
              "%q = heddle.split_heads %x {heads = 2 : i64} : (tensor<?x2xf32>) -> "
              "tensor<2x?x1xf32>\n%y = heddle.attention %q, %k, %v " +
                  mask + " : (tensor<2x?x1xf32>, tensor<1x?x1xf32>, tensor<1x?x2xf32>" + moreTypes +
                  R"() -> tensor<2x?x2xf32> {
                     ^bb0(%s: f32):
                       %c = arith.constant 0.5 : f32
                       %t = arith.mulf %s, %c : f32
                       heddle.yield %t : f32
                     })",
              "%y"),
      std::move(arguments), Tensor64({2, tokens, 2}, std::move(expected)));
  test.calls[0].push_back(Tensor64({1, 3, 1}, {1, -1, 2}));
  test.calls[0].push_back(Tensor64({1, 3, 2}, {1, 0, 0, 1, 2, 2}));
  return test;
}

static std::vector<OpCase> fusedAttentionCases() {
  std::string rows = "%rows: !heddle.sequences, ", rowsType = ", !heddle.sequences";
  Tensor64 x({1, 2}, {1, 2});
  // Queries 1 and 2 over all keys, over the first two, over the first.
  std::vector<double> all = {1.4245977349564507, 1.215050426842088, 1.6702654857389012,
                             1.445888052355822};
  std::vector<double> two = {0.7310585786300049, 0.2689414213699951, 0.8807970779778823,
                             0.11920292202211755};
  OpCase hidden = attention("attention_nothing_seen", "%m: tensor<?x?xi1>, ", "mask(%m) {masked}",
                            ", tensor<?x?xi1>", {x, Tensor64({1, 3})}, {0, 0, 0, 0});
  // Values that are not seen may be anything.
  OpCase skipped = attention("attention_skips_nan", rows, "queries(%rows) {causal, masked}",
                             rowsType, {x, Batch::single(1, 1)}, two);
  std::get<Tensor64>(skipped.calls[0][2]).data[2] = nan;
  std::get<Tensor64>(skipped.calls[0][3]).data[5] = nan;
  OpCase masked =
      attention("attention_causal", rows, "queries(%rows) {causal, masked}", rowsType,
                {Tensor64({3, 2}, {1, 2, 1, 2, 1, 2}), Batch::single(3)},
                {1, 0, two[0], two[1], all[0], all[1], 1, 0, two[2], two[3], all[2], all[3]});
  return {attention("attention", "", "", "", {x}, all), masked, skipped, hidden};
}

/// Two calls of attention on keys that are also the values: 1 and 2, then, appended in their place,
/// -1 and -2. `isReadLate`: the first reads its keys when the others have been appended.
static OpCase appendedTwice(const std::string &name, bool isReadLate) {
  std::string cache = "!heddle.cache<1 x 1, 1, 1, f32>", heads = "tensor<1x?x1xf32>";
  auto append = [&](const std::string &number, const std::string &before, const std::string &keys) {
    return "%c" + number + ", %k" + number + ", %v" + number + ", %r" + number +
           " = heddle.cache_append " + before + ", " + keys + ", " + keys +
           ", %rows {layer = 0 : i64} : (" + cache + ", " + heads + ", " + heads +
           ", !heddle.sequences) -> (" + cache + ", " + heads + ", " + heads +
           ", !heddle.sequences)\n";
  };
  auto attend = [&](const std::string &number) {
    return "%y" + number + " = heddle.attention %q, %k" + number + ", %v" + number +
           " queries(%rows) keys(%r" + number + ") {causal, masked} : (" + heads + ", " + heads +
           ", " + heads + ", !heddle.sequences, !heddle.sequences) -> " + heads +
           " {\n^bb0(%s: f32):\n  heddle.yield %s : f32\n}\n";
  };
  std::string first = append("1", "%c", "%q"), second = append("2", "%c1", "%n");
  return simpleCase(
      name,
      forward("%x: tensor<?x1xf32>, %rows: !heddle.sequences, %c: " + cache,
              heads + ", " + heads + ", " + cache,
              "%q = heddle.split_heads %x {heads = 1 : i64} : (tensor<?x1xf32>) -> " + heads +
                  "\n%n = heddle.unary neg %q : (" + heads + ") -> " + heads + "\n" + first +
                  (isReadLate ? second + attend("1") : attend("1") + second) + attend("2"),
              "%y1, %y2, %c2"),
      {Tensor64({2, 1}, {1, 2}), Batch::single(2)}, Tensor64({1, 2, 1}, {1, 1.8807970779778823}));
}

static std::vector<OpCase> appendedTwiceCases() {
  std::vector<OpCase> cases = {appendedTwice("attention_before_its_keys_are_replaced", false),
                               appendedTwice("attention_after_its_keys_are_replaced", true)};
  for (OpCase &test : cases)
    test.expected[0].push_back(Tensor64({1, 2, 1}, {-1, -1.1192029220221177}));
  return cases;
}

std::vector<OpCase> fusedCases() {
  std::vector<OpCase> all = mapCases();
  for (auto cases : {linearCases, fusedAttentionCases, appendedTwiceCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

} // namespace heddle::test
