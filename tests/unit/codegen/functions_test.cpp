// The error of the vector functions, in units in the last place, over floats of the whole range.
#include "tests/unit/codegen/jit_runner.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace heddle::test {
namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

struct Function {
  const char *kind;
  double (*exact)(double);
  double bound;            ///< in units in the last place of the result
  double limit = HUGE_VAL; ///< largest argument it is right for
};

const Function functions[] = {
    {"exp", std::exp, 1},
    {"log", std::log, 2},
    {"tanh", std::tanh, 2},
    {"erf", std::erf, 2},
    {"sin", std::sin, 1.5, 0x1p48},
    {"cos", std::cos, 1.5, 0x1p48},
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, 3, 87},
    {"rsqrt", [](double x) { return 1 / std::sqrt(x); }, 1.5},
};

void PrintTo(const Function &function, std::ostream *stream) { *stream << function.kind; }

/// Every 4099th float, and what stands out.
std::vector<float> arguments() {
  std::vector<float> values = {0.0f, -0.0f, inf, -inf, nan, 1, -1, 88.72f, 88.73f, -103.97f, -104};
  for (uint64_t bits = 0; bits <= 0xffffffffu; bits += 4099)
    values.push_back(std::bit_cast<float>(uint32_t(bits)));
  return values;
}

/// The distance in units in the last place of `expected` as an f32.
double ulps(float found, double expected) {
  float rounded = float(expected);
  if (std::isnan(expected) || std::isnan(found))
    return std::isnan(expected) && std::isnan(found) ? 0 : HUGE_VAL;
  if (std::isinf(rounded) || std::isinf(found))
    return rounded == found ? 0 : HUGE_VAL;
  double unit =
      std::max(std::ldexp(1.0, std::ilogb(rounded == 0 ? 0x1p-149f : rounded) - 23), 0x1p-149);
  return std::fabs(found - expected) / unit;
}

class VectorFunction : public testing::TestWithParam<std::tuple<Function, const char *>> {};

TEST_P(VectorFunction, IsRightToAFewUnits) {
  auto [function, isa] = GetParam();
  if (!codegen::selectTarget(isa))
    GTEST_SKIP() << "this processor cannot run " << isa;
  std::string type = "tensor<?xf32>";
  auto model = compileText("func.func @forward(%x: " + type + ") -> " + type +
                               " {\n%y = heddle.unary " + function.kind + " %x : (" + type +
                               ") -> " + type + "\nreturn %y : " + type + "\n}\n",
                           {}, {.isa = isa});
  ASSERT_TRUE(model);
  std::vector<float> x = arguments();
  runtime::Call call;
  int64_t shape[] = {int64_t(x.size())};
  call.tensor(0, x.data(), shape);
  model->run(call);
  std::vector<float> y = model->result(0);
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    if (std::fabs(x[i]) > function.limit && std::isfinite(x[i]))
      continue;
    double error = ulps(y[i], function.exact(x[i]));
    if (!(error <= worst)) {
      worst = error;
      where = x[i];
    }
  }
  EXPECT_LE(worst, function.bound) << "at " << where;
  RecordProperty("worst_ulps", std::to_string(worst));
}

INSTANTIATE_TEST_SUITE_P(Functions, VectorFunction,
                         testing::Combine(testing::ValuesIn(functions),
                                          testing::Values("avx2", "avx512")),
                         [](const auto &info) {
                           return std::string(std::get<0>(info.param).kind) + "_" +
                                  std::get<1>(info.param);
                         });

} // namespace
} // namespace heddle::test
