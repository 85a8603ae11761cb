// Products with the matrices of experts: every weight type, instruction set and program gives, bit
// for bit, what a product with each matrix by itself does.
#include "tests/unit/codegen/jit_runner.h"
#include "tests/unit/codegen/random_values.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace heddle::test {
namespace {

struct Shape {
  int64_t tokens, chosen, experts, depth, columns;

  Shape withTokens(int64_t count) const { return {count, chosen, experts, depth, columns}; }
};

std::string typeOf(const std::string &dims, const std::string &element) {
  bool plain = element == "f32" || element == "bf16" || element == "i32";
  return "tensor<" + dims + "x" + (plain ? element : "!heddle.blocks<" + element + ">") + ">";
}

/// The text of products with the weights that `weights` names, all of one type.
std::string text(const std::vector<std::string> &weights, const std::string &type,
                 const std::string &arguments, const std::string &results,
                 const std::string &body) {
  std::string globals, reads;
  for (const std::string &name : weights) {
    globals += "heddle.param @" + name + " : " + type + "\n";
    reads += "%" + name + " = heddle.weight @" + name + " : " + type + "\n";
  }
  return globals + "func.func @forward(" + arguments + ") -> (" + results + ") {\n" + reads + body +
         " : " + results + "\n}\n";
}

struct Case {
  std::string element;
  const char *isa;
  bool decode;
};

void PrintTo(const Case &c, std::ostream *stream) {
  *stream << c.element << ' ' << c.isa << (c.decode ? " decode" : " prefill");
}

class Experts : public testing::TestWithParam<Case> {
protected:
  void SetUp() override {
    if (!codegen::selectTarget(GetParam().isa))
      GTEST_SKIP() << "this processor cannot run " << GetParam().isa;
  }

  /// Row (t, j) of what the experts that `ids` chooses give.
  std::vector<float> products(const Shape &shape, const std::vector<float> &x,
                              const std::vector<float> &w, const std::vector<int32_t> &ids,
                              bool ofEach) {
    const Case &c = GetParam();
    const std::string k = std::to_string(shape.chosen), depth = std::to_string(shape.depth);
    const std::string n = std::to_string(shape.columns);
    const std::string weight =
        typeOf(std::to_string(shape.experts) + "x" + n + "x" + depth, c.element);
    const std::string input = typeOf(ofEach ? "?x" + k + "x" + depth : "?x" + depth, "f32");
    const std::string idsType = typeOf("?x" + k, "i32"), output = typeOf("?x" + k + "x" + n, "f32");
    auto model =
        compileText(text({"w"}, weight, "%x: " + input + ", %ids: " + idsType, output,
                         "%y = heddle.expert_matmul %x, %w experts(%ids) : (" + input + ", " +
                             weight + ", " + idsType + ") -> " + output + "\nreturn %y"),
                    {{"w", w}}, {.isa = c.isa, .threads = 2, .decode = c.decode});
    if (!model)
      return {};
    std::vector<int64_t> inputShape = {shape.tokens, shape.depth};
    if (ofEach)
      inputShape.insert(inputShape.begin() + 1, shape.chosen);
    int64_t idsShape[] = {shape.tokens, shape.chosen};
    runtime::Call call;
    call.tensor(0, x.data(), inputShape);
    call.tensor(1, ids.data(), idsShape);
    model->run(call);
    return model->result(0);
  }

  /// The rows of `x` times the matrix of each expert, by the other program.
  std::vector<std::vector<float>> allProducts(const Shape &shape, const std::vector<float> &x,
                                              const std::vector<float> &w) {
    const Case &c = GetParam();
    const std::string depth = std::to_string(shape.depth), n = std::to_string(shape.columns);
    const std::string weight = typeOf(n + "x" + depth, c.element);
    const std::string input = typeOf("?x" + depth, "f32"), output = typeOf("?x" + n, "f32");
    std::vector<std::string> names;
    Weights weights;
    std::string body, results, values;
    for (int64_t expert = 0; expert < shape.experts; ++expert) {
      names.push_back("w" + std::to_string(expert));
      auto from = w.begin() + expert * shape.columns * shape.depth;
      weights[names.back()] = {from, from + shape.columns * shape.depth};
      body += "%y" + names.back() + " = heddle.matmul %x, %" + names.back() +
              " {transpose_rhs} : (" + input + ", " + weight + ") -> " + output + "\n";
      results += (expert ? ", " : "") + output;
      values += (expert ? ", %y" : "%y") + names.back();
    }
    auto model =
        compileText(text(names, weight, "%x: " + input, results, body + "return " + values),
                    weights, {.isa = c.isa, .threads = 1, .decode = !c.decode});
    if (!model)
      return {};
    int64_t inputShape[] = {int64_t(x.size()) / shape.depth, shape.depth};
    runtime::Call call;
    call.tensor(0, x.data(), inputShape);
    model->run(call);
    std::vector<std::vector<float>> all;
    for (size_t expert = 0; expert < names.size(); ++expert)
      all.push_back(model->result(expert));
    return all;
  }

  /// Of an expert that does not exist it is NaN.
  void check(const char *what, const Shape &shape, const std::vector<int32_t> &ids,
             bool ofEach = false) {
    SCOPED_TRACE(what);
    auto x = randomValues(shape.tokens * (ofEach ? shape.chosen : 1) * shape.depth, 1);
    auto w = randomValues(shape.experts * shape.columns * shape.depth, 2);
    auto found = products(shape, x, w, ids, ofEach);
    ASSERT_EQ(int64_t(found.size()), shape.tokens * shape.chosen * shape.columns);
    auto expected = allProducts(shape, x, w);
    ASSERT_EQ(int64_t(expected.size()), shape.experts);
    for (size_t i = 0; i < ids.size(); ++i)
      for (int64_t n = 0; n < shape.columns; ++n) {
        float value = found[i * size_t(shape.columns) + size_t(n)];
        if (ids[i] < 0 || ids[i] >= shape.experts) {
          ASSERT_TRUE(std::isnan(value)) << "entry " << i << ", " << n;
          continue;
        }
        size_t row = ofEach ? i : i / size_t(shape.chosen);
        ASSERT_EQ(value, expected[size_t(ids[i])][row * size_t(shape.columns) + size_t(n)])
            << "entry " << i << ", " << n << " of " << shape.depth << " x " << shape.columns;
      }
  }
};

std::vector<int32_t> randomIds(const Shape &shape, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < shape.tokens * shape.chosen; ++i)
    ids.push_back(int32_t(engine() % uint64_t(shape.experts)));
  return ids;
}

/// Shapes that differ in their number of tokens alone are one kernel.
TEST_P(Experts, GiveWhatEachMatrixGives) {
  const Shape wide{1, 1, 5, 288, 48}, square{23, 4, 4, 40, 33}, ofEach{6, 2, 3, 64, 72};
  check("one for a token", wide, randomIds(wide, 3));
  check("the same for all", wide.withTokens(19), std::vector<int32_t>(19, 2));
  check("several", square, randomIds(square, 3));
  check("all of them", square.withTokens(3), {0, 1, 2, 3, 3, 2, 1, 0, 2, 0, 3, 1});
  check("no tokens", square.withTokens(0), {});
  check("none that exist", square.withTokens(2), {0, 4, 1, -1, INT32_MAX, INT32_MIN, 1 << 16, 3});
  check("another row for each", ofEach, randomIds(ofEach, 4), true);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  auto add = [&](const std::string &element, std::initializer_list<const char *> isas) {
    for (const char *isa : isas)
      for (bool decode : {false, true})
        all.push_back({element, isa, decode});
  };
  add("f32", {"avx2", "avx512"});
  add("bf16", {"avx2", "avx512", "avx512_bf16"});
  for (const char *element : {"q8_0", "q4_0", "q4_k", "q6_k", "int8"})
    add(element, {"avx2", "avx512_vnni"});
  return all;
}
INSTANTIATE_TEST_SUITE_P(Elements, Experts, testing::ValuesIn(cases()));

TEST(TopK, OfWideRowsIsSortedAndStable) {
  constexpr int64_t rows = 9, width = 150, count = 40;
  std::string input = typeOf("?x150", "f32");
  std::string values = typeOf("?x40", "f32"), ids = typeOf("?x40", "i32");
  std::vector<float> x = randomValues(rows * width, 5);
  for (float &value : x)
    value = std::round(value * 20); // many are equal
  for (bool decode : {false, true}) {
    auto model =
        compileText("func.func @forward(%x: " + input + ") -> (" + values + ", " + ids +
                        ") {\n%v, %i = heddle.top_k %x {count = 40 : i64} : (" + input + ") -> (" +
                        values + ", " + ids + ")\nreturn %v, %i : " + values + ", " + ids + "\n}\n",
                    {}, {.threads = 2, .decode = decode});
    ASSERT_TRUE(model);
    runtime::Call call;
    int64_t shape[] = {rows, width};
    call.tensor(0, x.data(), shape);
    model->run(call);
    std::vector<float> found = model->result(0), places = model->result(1);
    for (int64_t row = 0; row < rows; ++row) {
      std::vector<int64_t> order(width);
      for (int64_t i = 0; i < width; ++i)
        order[size_t(i)] = i;
      const float *entries = x.data() + row * width;
      std::ranges::sort(order, [&](int64_t a, int64_t b) {
        return entries[a] > entries[b] || (entries[a] == entries[b] && a < b);
      });
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(places[size_t(row * count + i)], float(order[size_t(i)])) << row << ", " << i;
        ASSERT_EQ(found[size_t(row * count + i)], entries[order[size_t(i)]]) << row << ", " << i;
      }
    }
  }
}

} // namespace
} // namespace heddle::test
