// Products with weights in quantised blocks, and look-ups in them: every format, instruction set
// and program, against the codecs and the documented rounding of activations.
#include "tests/unit/codegen/jit_runner.h"
#include "tests/unit/codegen/random_values.h"

#include "codegen/jit/machine.h"
#include "runtime/quantized/codec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace heddle::test {
namespace {

using runtime::BlockFormat;

const std::vector<std::string> formats = {"q8_0", "q4_0", "q4_k", "q6_k", "int8"};
const std::vector<const char *> isas = {"avx2", "avx512", "avx512_vnni", "avx512_bf16"};

/// What the blocks of a row-major matrix stand for.
std::vector<float> throughBlocks(const BlockFormat &format, const std::vector<float> &values,
                                 int64_t width) {
  std::vector<float> result(values.size());
  std::vector<uint8_t> row(size_t(format.rowBytes(width)));
  for (size_t at = 0; at < values.size(); at += size_t(width)) {
    quantiseRow(format, values.data() + at, width, row.data());
    dequantiseRow(format, row.data(), width, 0, width, result.data() + at);
  }
  return result;
}

/// Activations as `quantise` rounds them.
std::vector<double> roundedRows(const std::vector<float> &x, int64_t width, int64_t length) {
  std::vector<double> result(x.size());
  for (size_t row = 0; row < x.size(); row += size_t(width))
    for (int64_t begin = 0; begin < width; begin += length) {
      int64_t end = std::min(width, begin + length);
      float most = 0;
      for (int64_t i = begin; i < end; ++i)
        most = std::max(most, std::abs(x[row + size_t(i)]));
      float factor = most < 1e-30f ? 0 : 127 / most;
      for (int64_t i = begin; i < end; ++i)
        result[row + size_t(i)] =
            double(std::nearbyint(x[row + size_t(i)] * factor)) * double(most / 127);
    }
  return result;
}

std::string productText(const std::string &format, int64_t depth, int64_t columns) {
  std::string weight = "tensor<" + std::to_string(columns) + "x" + std::to_string(depth) +
                       "x!heddle.blocks<" + format + ">>";
  std::string input = "tensor<?x" + std::to_string(depth) + "xf32>";
  std::string output = "tensor<?x" + std::to_string(columns) + "xf32>";
  return "heddle.param @w : " + weight + "\nfunc.func @forward(%x: " + input + ") -> " + output +
         " {\n%w = heddle.weight @w : " + weight +
         "\n%y = heddle.matmul %x, %w {transpose_rhs} : (" + input + ", " + weight + ") -> " +
         output + "\nreturn %y : " + output + "\n}\n";
}

std::vector<float> product(const std::string &format, const std::vector<float> &x,
                           const std::vector<float> &w, int64_t depth, const JitOptions &options) {
  int64_t columns = int64_t(w.size()) / depth, rows = int64_t(x.size()) / depth;
  auto model = compileText(productText(format, depth, columns), {{"w", w}}, options);
  if (!model)
    return {};
  runtime::Call call;
  int64_t shape[] = {rows, depth};
  call.tensor(0, x.data(), shape);
  model->run(call);
  return model->result(0);
}

struct Case {
  std::string format;
  const char *isa;
  bool decode;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << c.format << ' ' << c.isa << (c.decode ? " decode" : " prefill");
}

class QuantisedLinear : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (!codegen::selectTarget(GetParam().isa))
      GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
  }

  void check(const std::vector<float> &x, const std::vector<float> &w, int64_t depth) {
    const Case &c = GetParam();
    const BlockFormat &format = *runtime::findBlockFormat(c.format);
    std::vector<float> weight = throughBlocks(format, w, depth);
    std::vector<double> input = roundedRows(x, depth, format.length == 32 ? 32 : 256);
    std::vector<float> found = product(c.format, x, w, depth, {.isa = c.isa, .decode = c.decode});
    int64_t rows = int64_t(x.size()) / depth, columns = int64_t(w.size()) / depth;
    ASSERT_EQ(found.size(), size_t(rows * columns));
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = 0, magnitude = 0;
        for (int64_t k = 0; k < depth; ++k) {
          double term = input[size_t(i * depth + k)] * double(weight[size_t(j * depth + k)]);
          sum += term;
          magnitude += std::abs(term);
        }
        // Q4_K subtracts a minimum from what it scales; both are larger than the difference.
        ASSERT_NEAR(found[size_t(i * columns + j)], sum, 3e-6 * magnitude + 1e-6)
            << i << "," << j << " over " << depth;
      }
  }
};

TEST_P(QuantisedLinear, EqualsTheSumOfProducts) {
  for (auto [rows, depth, columns] : std::vector<std::array<int64_t, 3>>{
           {1, 64, 64}, {3, 32, 5}, {17, 288, 40}, {5, 7, 16}, {13, 520, 33}, {0, 32, 16}}) {
    check(randomValues(rows * depth, 1), randomValues(columns * depth, 2), depth);
    if (HasFatalFailure())
      return;
  }
}

/// The largest integers there are, with all signs: sums of two products do not fit 16 bits.
TEST_P(QuantisedLinear, LosesNothingAtTheEndsOfTheRange) {
  constexpr int64_t rows = 4, depth = 512, columns = 16;
  std::vector<float> x(rows * depth), w(columns * depth);
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < depth; ++k)
      x[size_t(i * depth + k)] = i == 0 ? 127 : i == 1 ? -127 : (k >> (i - 2)) % 2 ? -127 : 127;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t k = 0; k < depth; ++k)
      w[size_t(j * depth + k)] = j == 0 ? 127 : j == 1 ? -127 : (k >> (j % 4)) % 2 ? -127 : 127;
  check(x, w, depth);
}

TEST_P(QuantisedLinear, RowsDoNotDependOnTheirNeighbours) {
  const Case &c = GetParam();
  constexpr int64_t rows = 103, depth = 544, columns = 40;
  auto x = randomValues(rows * depth, 3), w = randomValues(columns * depth, 4);
  auto all = product(c.format, x, w, depth, {.isa = c.isa, .decode = c.decode});
  ASSERT_EQ(all.size(), size_t(rows * columns));
  auto model = compileText(productText(c.format, depth, columns), {{"w", w}},
                           {.isa = c.isa, .threads = 2, .decode = !c.decode});
  ASSERT_TRUE(model);
  for (int64_t row : {0, 5, 50, 102}) {
    runtime::Call call;
    int64_t shape[] = {1, depth};
    call.tensor(0, x.data() + row * depth, shape);
    model->run(call);
    std::vector<float> alone = model->result(0);
    for (int64_t j = 0; j < columns; ++j)
      ASSERT_EQ(alone[size_t(j)], all[size_t(row * columns + j)]) << row << "," << j;
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string &format : formats)
    for (const char *isa : isas)
      for (bool decode : {false, true})
        all.push_back({format, isa, decode});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Formats, QuantisedLinear, testing::ValuesIn(cases()));

class QuantisedFormat : public testing::TestWithParam<std::string> {};

TEST_P(QuantisedFormat, NanStaysAndTinyVanishes) {
  constexpr int64_t depth = 512;
  auto w = randomValues(16 * depth, 5);
  std::vector<float> x(4 * depth);
  x[10] = NAN;                                   // the first row
  std::fill_n(x.begin() + depth, depth, 1e-39f); // the second
  std::fill_n(x.begin() + 2 * depth, depth, 1e30f);
  auto y = product(GetParam(), x, w, depth, {});
  ASSERT_EQ(y.size(), 64u);
  for (size_t j = 0; j < 16; ++j) {
    EXPECT_TRUE(std::isnan(y[j])) << j;
    EXPECT_EQ(y[16 + j], 0) << j;
    EXPECT_TRUE(std::isfinite(y[32 + j])) << j;
    EXPECT_EQ(y[48 + j], 0) << j;
  }
}

/// The rows `ids` of a table of `rows` rows whose elements are of type `element`; with `isTied` a
/// product reads the table too.
std::vector<float> lookUp(const std::string &element, const std::vector<float> &values,
                          const std::vector<int32_t> &ids, size_t rows = 7, bool isTied = false,
                          const JitOptions &options = {}) {
  std::string width = std::to_string(values.size() / rows);
  std::string table = "tensor<" + std::to_string(rows) + "x" + width + "x" + element + ">";
  std::string output = "tensor<?x" + width + "xf32>";
  std::string logits = "tensor<?x" + std::to_string(rows) + "xf32>";
  std::string product = "%z = heddle.matmul %y, %t {transpose_rhs} : (" + output + ", " + table +
                        ") -> " + logits + "\n";
  std::string results = isTied ? output + ", " + logits : output;
  auto model = compileText(
      "heddle.param @t : " + table + "\nfunc.func @forward(%ids: tensor<?xi32>) -> (" + results +
          ") {\n%t = heddle.weight @t : " + table + "\n%y = heddle.embed %t, %ids : (" + table +
          ", tensor<?xi32>) -> " + output + "\n" + (isTied ? product : "") + "return %y" +
          (isTied ? ", %z" : "") + " : " + results + "\n}\n",
      {{"t", values}}, options);
  if (!model)
    return {};
  const auto &params = model->programs().prefill.program.params;
  EXPECT_EQ(params.size(), 1u) << "one copy of the table";
  EXPECT_EQ(params.front().layout == runtime::Layout::panels, isTied);
  runtime::Call call;
  int64_t shape[] = {int64_t(ids.size())};
  call.tensor(0, ids.data(), shape);
  model->run(call);
  return model->result(0);
}

TEST_P(QuantisedFormat, LookUpGivesTheValuesOfTheBlocks) {
  for (size_t width : {16, 32, 40, 256, 300}) {
    auto values = randomValues(int64_t(7 * width), 6);
    std::vector<int32_t> ids = {6, 0, 3};
    auto found = lookUp("!heddle.blocks<" + GetParam() + ">", values, ids);
    auto blocks = throughBlocks(*runtime::findBlockFormat(GetParam()), values, int64_t(width));
    ASSERT_EQ(found.size(), 3 * width);
    for (size_t i = 0; i < found.size(); ++i)
      ASSERT_EQ(found[i], blocks[size_t(ids[i / width]) * width + i % width])
          << i << " of width " << width;
  }
}

/// Of a table that a product reads too there is one copy, the product's: the same values.
TEST(LookUp, ReadsThePanelsOfATableThatIsMultipliedToo) {
  std::vector<std::string> elements = {"f32", "bf16"};
  for (const std::string &format : formats)
    elements.push_back("!heddle.blocks<" + format + ">");
  const std::vector<int32_t> ids = {36, 0, 15, 16, 31, -1, 37, 32};
  for (const std::string &element : elements)
    for (size_t width : {5, 40, 300, 513})
      for (const char *isa : {"avx2", "avx512"}) {
        if (!codegen::selectTarget(isa))
          continue;
        SCOPED_TRACE(element + " of width " + std::to_string(width) + " on " + isa);
        auto values = randomValues(int64_t(37 * width), 8);
        auto expected = lookUp(element, values, ids, 37, false, {.isa = isa});
        auto found = lookUp(element, values, ids, 37, true, {.isa = isa});
        ASSERT_EQ(found.size(), ids.size() * width);
        ASSERT_EQ(expected.size(), found.size());
        ASSERT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
      }
}

TEST(LookUp, OfIdsOutsideOfTheTableGivesNaN) {
  std::vector<std::string> elements = {"f32", "bf16"};
  for (const std::string &format : formats)
    elements.push_back("!heddle.blocks<" + format + ">");
  std::vector<int32_t> ids = {7, 6, -1, 0, INT32_MAX, INT32_MIN};
  for (const std::string &element : elements)
    for (size_t width : {40, 256}) {
      auto found = lookUp(element, randomValues(int64_t(7 * width), 7), ids);
      ASSERT_EQ(found.size(), ids.size() * width);
      for (size_t i = 0; i < found.size(); ++i)
        ASSERT_EQ(std::isnan(found[i]), ids[i / width] < 0 || ids[i / width] > 6)
            << element << ": id " << ids[i / width] << ", " << i % width << " of " << width;
    }
}

INSTANTIATE_TEST_SUITE_P(Formats, QuantisedFormat, testing::ValuesIn(formats),
                         [](const auto &info) { return info.param; });

} // namespace
} // namespace heddle::test
