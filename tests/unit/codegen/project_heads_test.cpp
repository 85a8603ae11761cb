// The products of project_heads whose weights are of several types: their bits are those of three
// products and an append, from either program. Neighbours of one type share the code of a product.
#include "tests/unit/codegen/random_values.h"
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

namespace heddle::test {
namespace {

/// Types of the weights of queries, keys and values.
using Types = std::array<std::string, 3>;

constexpr int64_t depth = 300; // a block of 256 and a part of one, nine of 32 and a part
constexpr int64_t queryHeads = 4, keyHeads = 2, width = 64, context = 48;

Model modelOf(const Types &types, bool isFused) {
  const std::array<int64_t, 3> heads = {queryHeads, keyHeads, keyHeads};
  const std::array<const char *, 3> names = {"q", "k", "v"};
  std::array<std::string, 3> weights, rows, split;
  std::string params, products;
  Model model;
  model.context = context;
  for (size_t i = 0; i < 3; ++i) {
    weights[i] = fmt::format("tensor<{}x{}x{}>", heads[i] * width, depth, types[i]);
    rows[i] = fmt::format("tensor<?x{}xf32>", heads[i] * width);
    split[i] = fmt::format("tensor<{}x?x{}xf32>", heads[i], width);
    params += fmt::format("heddle.param @{} : {}\n", names[i], weights[i]);
    products += fmt::format("%w{0} = heddle.weight @{0} : {1}\n", names[i], weights[i]);
    if (!isFused)
      products += fmt::format(
          "%p{0} = heddle.matmul %x, %w{0} {{transpose_rhs}} : (tensor<?x{1}xf32>, {2}) -> {3}\n"
          "%h{0} = heddle.split_heads %p{0} {{heads = {4} : i64}} : ({3}) -> {5}\n",
          names[i], depth, weights[i], rows[i], heads[i], split[i]);
    std::vector<float> values = randomValues(heads[i] * width * depth, unsigned(i));
    model.params[names[i]] =
        Tensor64({heads[i] * width, depth}, std::vector<double>(values.begin(), values.end()));
  }
  std::string cache = fmt::format("!heddle.cache<1 x {}, {}, {}, f32>", keyHeads, width, width);
  products += isFused
                  ? fmt::format("%hq, %c1, %ks, %vs, %kr = heddle.project_heads %x, %wq, %wk, %wv "
                                "cache(%c) rows(%rows) {{layer = 0 : i64, transpose_rhs}} : "
                                "(tensor<?x{}xf32>, {}, {}, {}, {}, !heddle.sequences) -> ",
                                depth, weights[0], weights[1], weights[2], cache) +
                        fmt::format("({}, {}, {}, {}, !heddle.sequences)", split[0], cache,
                                    split[1], split[2])
                  : fmt::format("%c1, %ks, %vs, %kr = heddle.cache_append %c, %hk, %hv, %rows "
                                "{{layer = 0 : i64}} : ({0}, {1}, {1}, !heddle.sequences) -> "
                                "({0}, {1}, {1}, !heddle.sequences)",
                                cache, split[1]);
  model.text = params + fmt::format("func.func @forward(%x: tensor<?x{}xf32>, %rows: "
                                    "!heddle.sequences, %c: {}) -> ({}, {}, {}, {}) {{\n{}\n"
                                    "return %hq, %ks, %vs, %c1 : {}, {}, {}, {}\n}}\n",
                                    depth, cache, split[0], split[1], split[2], cache, products,
                                    split[0], split[1], split[2], cache);
  return model;
}

/// The first `rows` of the same random rows.
Call callOf(int64_t rows) {
  std::vector<float> values = randomValues(rows * depth, 7);
  return {Tensor64({rows, depth}, std::vector<double>(values.begin(), values.end())),
          Batch::single(rows)};
}

struct Case {
  Types types;
  const char *isa;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << fmt::format("{}, {}, {} on {}", c.types[0], c.types[1], c.types[2], c.isa);
}

class ProjectHeads : public testing::TestWithParam<Case> {};

TEST_P(ProjectHeads, GiveTheBitsOfThreeProducts) {
  const auto &[types, isa] = GetParam();
  if (!codegen::selectTarget(isa))
    GTEST_SKIP() << "this processor cannot run " << isa;
  std::vector<Call> calls;
  for (int64_t rows : {1, 2, 3, 4, 5, 6, 7, 8, 37})
    calls.push_back(callOf(rows));
  std::vector<Tensors> expected;
  for (bool isFused : {false, true})
    for (bool isDecode : {false, true}) {
      SCOPED_TRACE(
          fmt::format("{}, {}", isFused ? "fused" : "unfused", isDecode ? "decode" : "prefill"));
      auto results =
          runNative(modelOf(types, isFused), calls, {.isa = isa, .threads = 2, .decode = isDecode});
      ASSERT_TRUE(bool(results)) << results.error().message;
      if (expected.empty())
        expected = *results;
      for (size_t call = 0; call < calls.size(); ++call)
        for (size_t i = 0; i < 3; ++i)
          ASSERT_EQ((*results)[call][i].data, expected[call][i].data)
              << "result " << i << " of call " << call;
    }
}

std::vector<Case> cases() {
  const std::string q8 = "!heddle.blocks<q8_0>", q4 = "!heddle.blocks<q4_0>",
                    q4k = "!heddle.blocks<q4_k>", q6k = "!heddle.blocks<q6_k>",
                    int8 = "!heddle.blocks<int8>";
  std::vector<Case> all;
  for (const Types &types :
       {Types{q6k, q4k, q4k}, Types{int8, q4k, q4k}, Types{q8, q4, q4}, Types{q4k, q6k, int8}})
    for (const char *isa : {"avx2", "avx512", "avx512_bf16"})
      all.push_back({types, isa});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Types, ProjectHeads, testing::ValuesIn(cases()));

} // namespace
} // namespace heddle::test
