// The fp64 kernels: products, elementwise functions, reductions, norms, softmax.
#include "runtime/reference/elementwise.h"
#include "runtime/reference/matmul.h"
#include "runtime/reference/norm.h"
#include "runtime/reference/reduce.h"
#include "runtime/reference/softmax.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace heddle::runtime::reference;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Tensor64 randomTensor(Shape shape, unsigned seed) {
  std::mt19937 engine(seed);
  Tensor64 tensor(std::move(shape));
  for (double &x : tensor.data)
    x = double(int(engine() % 2001) - 1000) / 512;
  return tensor;
}

//===-- Products
//--------------------------------------------------------------------------------===//

struct ProductSize {
  int64_t rows, depth, columns;
};

// The blocks of the kernel are 8 rows, 32 and 4 of the depth, 512 columns.
class ReferenceMatmul : public testing::TestWithParam<ProductSize> {};

TEST_P(ReferenceMatmul, IsTheSumOfProducts) {
  auto [m, k, n] = GetParam();
  Tensor64 a = randomTensor({m, k}, 1), b = randomTensor({k, n}, 2), bt({n, k});
  for (int64_t i = 0; i < k; ++i)
    for (int64_t j = 0; j < n; ++j)
      bt.data[size_t(j * k + i)] = b.data[size_t(i * n + j)];
  Tensor64 plain = matmul(a, matrixOf(b), false), transposed = matmul(a, matrixOf(bt), true);
  ASSERT_EQ(plain.shape, (Shape{m, n}));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.data[size_t(i * k + l)] * b.data[size_t(l * n + j)];
      // The same order of additions: the same bits.
      ASSERT_EQ(plain.data[size_t(i * n + j)], sum) << i << ", " << j;
      ASSERT_EQ(transposed.data[size_t(i * n + j)], sum) << i << ", " << j;
    }
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReferenceMatmul,
                         testing::Values(ProductSize{1, 1, 1}, ProductSize{3, 5, 7},
                                         ProductSize{8, 32, 16}, ProductSize{9, 33, 17},
                                         ProductSize{17, 70, 515}, ProductSize{2, 3, 1030},
                                         ProductSize{0, 4, 4}, ProductSize{4, 4, 0},
                                         ProductSize{4, 0, 4}));

TEST(ReferenceMatmulRows, AreReadOnceInOrder) {
  Tensor64 a = randomTensor({3, 40}, 3), b = randomTensor({40, 6}, 4);
  std::vector<int64_t> read;
  Matrix counted{40, 6, [&](int64_t row, double *out) {
                   read.push_back(row);
                   matrixOf(b).read(row, out);
                 }};
  (void)matmul(a, counted, false);
  ASSERT_EQ(read.size(), 40u);
  EXPECT_TRUE(std::is_sorted(read.begin(), read.end()));
}

//===-- Elementwise
//-----------------------------------------------------------------------------===//

TEST(ReferenceElementwise, GatesDoNotOverflow) {
  for (double x : {800.0, 1e5, 1e300}) {
    EXPECT_EQ(silu(x), x);
    EXPECT_EQ(silu(-x), 0);
    EXPECT_EQ(geluTanh(x), x);
    EXPECT_EQ(geluTanh(-x), 0);
    EXPECT_EQ(geluErf(x), x);
    EXPECT_EQ(geluErf(-x), 0);
    EXPECT_EQ(sigmoid(x), 1);
    EXPECT_EQ(sigmoid(-x), 0);
  }
}

TEST(ReferenceElementwise, GeluKeepsItsDigitsFarBelowZero) {
  // x * Phi(x) at -10, from tables: Phi(-10) = 7.619853024160527e-24.
  EXPECT_NEAR(geluErf(-10) / -7.619853024160527e-23, 1, 1e-12);
}

TEST(ReferenceElementwise, NanWinsInMaximumAndMinimum) {
  for (auto fn : {max, min}) {
    EXPECT_TRUE(std::isnan(fn(nan, 1)));
    EXPECT_TRUE(std::isnan(fn(1, nan)));
    EXPECT_TRUE(std::isnan(fn(nan, -inf)));
  }
  EXPECT_TRUE(std::isnan(relu(nan)));
}

TEST(ReferenceElementwise, RoundsToBf16LikeTheBitPattern) {
  // Rounding an f32 by its bits: add half of what is cut, ties to even.
  auto byBits = [](float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    return double(std::bit_cast<float>((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u));
  };
  std::mt19937 engine(7);
  for (int i = 0; i < 200000; ++i) {
    float value = std::bit_cast<float>(uint32_t(engine()));
    if (std::isfinite(value))
      ASSERT_EQ(roundToBf16(double(value)), byBits(value)) << value;
  }
  for (float value : {0.0f, 1e-45f, 1.17549435e-38f, 9.2e-41f, 3.3961775e38f, 3.4028235e38f})
    EXPECT_EQ(roundToBf16(double(value)), byBits(value)) << value;
  EXPECT_TRUE(std::isnan(roundToBf16(nan)));
  EXPECT_EQ(roundToBf16(-inf), -inf);
}

TEST(ReferenceElementwise, BroadcastsFromTheRight) {
  auto shapes = [](std::vector<Shape> list) { return broadcast(list); };
  EXPECT_EQ(shapes({{2, 1, 3}, {4, 1}}), (Shape{2, 4, 3}));
  EXPECT_EQ(shapes({{}, {5}}), (Shape{5}));
  EXPECT_EQ(shapes({{0, 3}, {1, 3}}), (Shape{0, 3}));
  EXPECT_EQ(shapes({{2}, {3}}), std::nullopt);
  EXPECT_EQ(shapes({{0}, {3}}), std::nullopt);
}

TEST(ReferenceElementwise, MapsThreeTensorsOfThreeRanks) {
  Tensor64 a({2, 1, 2}, {1, 2, 3, 4}), b({3, 1}, {10, 20, 30}), c({}, {0.5});
  const Tensor64 *inputs[] = {&a, &b, &c};
  Tensor64 sum = map({2, 3, 2}, inputs, [](auto x) { return x[0] + x[1] + x[2]; });
  EXPECT_EQ(sum.data, (std::vector<double>{11.5, 12.5, 21.5, 22.5, 31.5, 32.5, 13.5, 14.5, 23.5,
                                           24.5, 33.5, 34.5}));
}

//===-- Reductions, norms, softmax
//--------------------------------------------------------------===//

TEST(ReferenceReduce, FoldsAnyDimension) {
  Tensor64 x({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  EXPECT_EQ(reduce(x, 0, Reduction::sum).data, (std::vector<double>{8, 10, 12, 14, 16, 18}));
  EXPECT_EQ(reduce(x, 1, Reduction::mean).data, (std::vector<double>{3, 4, 9, 10}));
  EXPECT_EQ(reduce(x, 2, Reduction::max).data, (std::vector<double>{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(reduce(x, 2, Reduction::min).shape, (Shape{2, 3, 1}));
}

TEST(ReferenceNorm, KeepsTheVarianceOfLargeNumbers) {
  // The mean of squares minus the square of the mean would lose all digits of this one.
  double large = 1e12;
  Tensor64 x({1, 2}, {large, large + 1});
  Tensor64 y = layerNorm(x, nullptr, nullptr, 0);
  EXPECT_EQ(y.data, (std::vector<double>{-1, 1}));
}

TEST(ReferenceNorm, RmsIsAroundZero) {
  Tensor64 x({1, 2}, {3, 4}), weight({2}, {10, 1});
  Tensor64 y = rmsNorm(x, &weight, 0);
  double rms = std::sqrt(12.5);
  EXPECT_DOUBLE_EQ(y.data[0], 30 / rms);
  EXPECT_DOUBLE_EQ(y.data[1], 4 / rms);
}

TEST(ReferenceSoftmax, SumsToOneUnlessNothingIsSeen) {
  Tensor64 x({3, 4}, {1, -inf, 1000, 999, -inf, -inf, -inf, -inf, 5, nan, 1, 2});
  Tensor64 y = softmax(x, 1);
  EXPECT_DOUBLE_EQ(y.data[2] + y.data[3], 1);
  EXPECT_EQ(y.data[1], 0);
  for (size_t i = 4; i < 8; ++i)
    EXPECT_EQ(y.data[i], 0);
  for (size_t i = 8; i < 12; ++i)
    EXPECT_TRUE(std::isnan(y.data[i]));
}

} // namespace
