// Products with weights: every instruction set, both programs, shapes that do not divide by tiles.
#include "tests/unit/codegen/jit_runner.h"
#include "tests/unit/codegen/random_values.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

namespace heddle::test {
namespace {

float roundBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u);
}

struct Case {
  const char *isa;
  bool bf16;
  bool decode;
  int64_t rows, depth, columns;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << c.isa << (c.bf16 ? " bf16 " : " f32 ") << (c.decode ? "decode " : "prefill ") << c.rows
          << "x" << c.depth << "x" << c.columns;
}

class Linear : public testing::TestWithParam<Case> {};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char *isa : {"avx2", "avx512", "avx512_bf16"})
    for (bool bf16 : {false, true})
      for (bool decode : {false, true})
        for (auto [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{
                 {1, 64, 64}, {3, 7, 5}, {17, 33, 172}, {5, 1, 16}, {100, 40, 80}, {0, 8, 8}})
          all.push_back({isa, bf16, decode, rows, depth, columns});
  return all;
}

TEST_P(Linear, EqualsTheSumOfProducts) {
  Case c = GetParam();
  if (!codegen::selectTarget(c.isa))
    GTEST_SKIP() << "this processor cannot run " << c.isa;
  std::string weight = "tensor<" + std::to_string(c.columns) + "x" + std::to_string(c.depth) +
                       (c.bf16 ? "xbf16>" : "xf32>");
  std::string input = "tensor<?x" + std::to_string(c.depth) + "xf32>";
  std::string output = "tensor<?x" + std::to_string(c.columns) + "xf32>";
  std::string text = "heddle.param @w : " + weight + "\nfunc.func @forward(%x: " + input + ") -> " +
                     output + " {\n%w = heddle.weight @w : " + weight +
                     "\n%y = heddle.matmul %x, %w {transpose_rhs} : (" + input + ", " + weight +
                     ") -> " + output + "\nreturn %y : " + output + "\n}\n";
  std::vector<float> x = randomValues(c.rows * c.depth, 1);
  std::vector<float> w = randomValues(c.columns * c.depth, 2);
  auto model = compileText(text, {{"w", w}}, {.isa = c.isa, .decode = c.decode});
  ASSERT_TRUE(model);
  runtime::Call call;
  int64_t shape[] = {c.rows, c.depth};
  call.tensor(0, x.data(), shape);
  model->run(call);
  std::vector<float> y = model->result(0);
  ASSERT_EQ(y.size(), size_t(c.rows * c.columns));
  for (int64_t i = 0; i < c.rows; ++i)
    for (int64_t j = 0; j < c.columns; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t k = 0; k < c.depth; ++k) {
        float a = x[i * c.depth + k], b = w[j * c.depth + k];
        double product = c.bf16 ? double(roundBf16(a)) * roundBf16(b) : double(a) * b;
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(y[i * c.columns + j], sum, 1e-6 * magnitude + 1e-7) << i << "," << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linear, testing::ValuesIn(cases()));

} // namespace
} // namespace heddle::test
