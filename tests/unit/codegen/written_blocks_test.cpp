// Norms that write blocks, as `fuse-quantise` lets them, give the bits of those that write f32 for
// `quantise` to read.
#include "tests/unit/codegen/jit_runner.h"
#include "tests/unit/codegen/random_values.h"

#include "codegen/jit/machine.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::test {
namespace {

struct Case {
  std::string format;
  const char *isa;
  bool decode;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << c.format << ' ' << c.isa << (c.decode ? " decode" : " prefill");
}

/// A norm of `[rows, width]` whose result is of `element`, and a product with it.
std::string modelText(const char *kind, int64_t width, const std::string &format,
                      const std::string &element) {
  const std::string weight = fmt::format("tensor<33x{}x!heddle.blocks<{}>>", width, format);
  const std::string input = fmt::format("tensor<?x{}xf32>", width);
  const std::string row = fmt::format("tensor<{}xf32>", width);
  const std::string made = fmt::format("tensor<?x{}x{}>", width, element);
  return fmt::format("heddle.param @n : {0}\nheddle.param @d : {1}\n"
                     "func.func @forward(%x: {2}) -> tensor<?x33xf32> {{\n"
                     "%n = heddle.weight @n : {0}\n%d = heddle.weight @d : {1}\n"
                     "%h = heddle.norm {3} %x weight(%n) {{epsilon = 1.0e-05 : f64}} : ({2}, {0}) "
                     "-> {4}\n"
                     "%y = heddle.linear %h, %d {{transpose_rhs}} : ({4}, {1}) -> "
                     "tensor<?x33xf32> {{\n^bb0(%p: f32):\nheddle.yield %p : f32\n}}\n"
                     "return %y : tensor<?x33xf32>\n}}\n",
                     row, weight, input, kind, made);
}

/// The same with the matrices of three experts, of which each row chooses two.
std::string expertsText(int64_t width, const std::string &format, const std::string &element) {
  const std::string weight = fmt::format("tensor<3x33x{}x!heddle.blocks<{}>>", width, format);
  const std::string input = fmt::format("tensor<?x{}xf32>", width);
  const std::string made = fmt::format("tensor<?x{}x{}>", width, element);
  return fmt::format("heddle.param @d : {0}\n"
                     "func.func @forward(%x: {1}, %ids: tensor<?x2xi32>) -> tensor<?x2x33xf32> {{\n"
                     "%d = heddle.weight @d : {0}\n"
                     "%h = heddle.norm rms %x {{epsilon = 1.0e-05 : f64}} : ({1}) -> {2}\n"
                     "%y = heddle.expert_linear %h, %d experts(%ids) : ({2}, {0}, tensor<?x2xi32>) "
                     "-> tensor<?x2x33xf32> {{\n^bb0(%p: f32):\nheddle.yield %p : f32\n}}\n"
                     "return %y : tensor<?x2x33xf32>\n}}\n",
                     weight, input, made);
}

/// The blocks of rows that products with weights in `format` take.
std::string blocksFor(const std::string &format) {
  return format == "q8_0" ? "!heddle.blocks<row32>" : "!heddle.blocks<row256>";
}

class WrittenBlocks : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (!codegen::selectTarget(GetParam().isa))
      GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
  }

  std::vector<float> run(const std::string &text, int64_t width, int64_t rows, int threads,
                         const std::vector<int32_t> &ids = {}) {
    Weights weights = {{"d", randomValues((ids.empty() ? 33 : 99) * width, 2)}};
    if (ids.empty())
      weights["n"] = randomValues(width, 1);
    auto model = compileText(
        text, weights, {.isa = GetParam().isa, .threads = threads, .decode = GetParam().decode});
    if (!model)
      return {};
    const std::vector<float> x = randomValues(rows * width, 3);
    const int64_t shape[] = {rows, width};
    runtime::Call call;
    call.tensor(0, x.data(), shape);
    const int64_t idsShape[] = {rows, 2};
    if (!ids.empty())
      call.tensor(1, ids.data(), idsShape);
    model->run(call);
    return model->result(0);
  }
};

TEST_P(WrittenBlocks, AreThoseOfQuantise) {
  const std::string &format = GetParam().format;
  const std::string element = blocksFor(format);
  for (const char *kind : {"rms", "layer"})
    // Less than a block; whole blocks and some columns more.
    for (int64_t width : {1, 300})
      for (int64_t rows : {1, 103}) {
        SCOPED_TRACE(fmt::format("{} of {} columns and {} rows", kind, width, rows));
        auto expected = run(modelText(kind, width, format, "f32"), width, rows, 1);
        ASSERT_EQ(expected.size(), size_t(rows * 33));
        ASSERT_EQ(run(modelText(kind, width, format, element), width, rows, 3), expected);
      }
}

TEST_P(WrittenBlocks, AreReadByExperts) {
  const std::string &format = GetParam().format;
  const std::vector<int32_t> ids = {0, 2, 1, 0, 2, 1, 2, 0, 0, 1};
  auto expected = run(expertsText(300, format, "f32"), 300, 5, 1, ids);
  ASSERT_EQ(expected.size(), 5u * 2 * 33);
  ASSERT_EQ(run(expertsText(300, format, blocksFor(format)), 300, 5, 3, ids), expected);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *format : {"q8_0", "q4_k"})
    for (const char *isa : {"avx2", "avx512", "avx512_bf16"})
      for (bool decode : {false, true})
        all.push_back({format, isa, decode});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Formats, WrittenBlocks, testing::ValuesIn(cases()));

} // namespace
} // namespace heddle::test
