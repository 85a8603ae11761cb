// Kernels that share a phase, on any number of threads.
#include "tests/unit/codegen/jit_runner.h"

#include <gtest/gtest.h>

namespace heddle::test {
namespace {

constexpr int64_t width = 512;

/// x a^T + x b^T: the products are large enough to be shared between threads.
const char *const sumOfProducts = R"(
  heddle.param @a : tensor<512x512xf32>
  heddle.param @b : tensor<512x512xf32>
  func.func @forward(%x: tensor<?x512xf32>) -> tensor<?x512xf32> {
    %a = heddle.weight @a : tensor<512x512xf32>
    %b = heddle.weight @b : tensor<512x512xf32>
    %p = heddle.matmul %x, %a {transpose_rhs} : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
    %q = heddle.matmul %x, %b {transpose_rhs} : (tensor<?x512xf32>, tensor<512x512xf32>) -> tensor<?x512xf32>
    %s = heddle.binary add %p, %q : (tensor<?x512xf32>, tensor<?x512xf32>) -> tensor<?x512xf32>
    return %s : tensor<?x512xf32>
  }
)";

/// Small whole numbers, so that sums are exact.
std::vector<float> wholeNumbers(int64_t count, uint32_t seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = float(int32_t((seed = seed * 1664525 + 1013904223) >> 24) % 9 - 4);
  return values;
}

TEST(Phases, JoinedProductsAreRightOnAnyNumberOfThreads) {
  Weights weights = {{"a", wholeNumbers(width * width, 1)}, {"b", wholeNumbers(width * width, 2)}};
  const int64_t shape[] = {3, width};
  std::vector<float> x = wholeNumbers(3 * width, 3), expected(x.size());
  for (int64_t row = 0; row < 3; ++row)
    for (int64_t n = 0; n < width; ++n)
      for (int64_t k = 0; k < width; ++k)
        expected[size_t(row * width + n)] +=
            x[size_t(row * width + k)] *
            (weights["a"][size_t(n * width + k)] + weights["b"][size_t(n * width + k)]);
  for (int threads : {1, 2, 5})
    for (bool decode : {true, false}) {
      auto model = compileText(sumOfProducts, weights, {.threads = threads, .decode = decode});
      ASSERT_TRUE(model);
      runtime::Call call;
      call.tensor(0, x.data(), shape);
      model->run(call);
      EXPECT_EQ(model->result(0), expected) << threads << " threads";
      EXPECT_EQ(model->executor().lastCost().phases, decode ? 2 : 3);
    }
}

} // namespace
} // namespace heddle::test
