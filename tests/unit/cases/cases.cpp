#include "tests/unit/cases/cases.h"

#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::test {

std::vector<OpCase> opCases() {
  std::vector<OpCase> all;
  for (auto cases : {elementwiseCases, mathCases, shapeCases, attentionCases, fusedCases,
                     projectionCases, expertCases})
    for (OpCase &test : cases())
      all.push_back(std::move(test));
  return all;
}

std::string forward(const std::string &arguments, const std::string &types, const std::string &body,
                    const std::string &results, const std::string &globals) {
  return fmt::format("{}\nfunc.func @forward({}) -> ({}) {{\n{}\nreturn {} : {}\n}}\n", globals,
                     arguments, types, body, results, types);
}

Tensor64 vector(std::vector<double> values) {
  return Tensor64({int64_t(values.size())}, std::move(values));
}

OpCase simpleCase(std::string name, std::string text, Call arguments, Tensor64 expected) {
  return {std::move(name), {std::move(text)}, {std::move(arguments)}, {{std::move(expected)}}};
}

void expectNear(const Tensor64 &found, const Tensor64 &expected, double tolerance,
                const std::string &what) {
  ASSERT_EQ(found.shape, expected.shape) << what;
  for (size_t i = 0; i < expected.data.size(); ++i) {
    double x = found.data[i], y = expected.data[i];
    bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y));
    EXPECT_TRUE(same) << what << ", element " << i << ": found " << x << ", expected " << y;
  }
}

void checkCase(const OpCase &test, const Run &run, double tolerance) {
  Result<std::vector<Tensors>> found = run(test.model, test.calls);
  ASSERT_TRUE(found) << found.error().message;
  ASSERT_EQ(found->size(), test.expected.size());
  for (size_t call = 0; call < test.expected.size(); ++call) {
    ASSERT_EQ((*found)[call].size(), test.expected[call].size());
    for (size_t i = 0; i < test.expected[call].size(); ++i)
      expectNear((*found)[call][i], test.expected[call][i], tolerance,
                 fmt::format("{}, call {}, result {}", test.name, call, i));
  }
}

Tensors runOnce(const Run &run, const Model &model, const Call &call) {
  Result<std::vector<Tensors>> found = run(model, {call});
  if (found)
    return (*found)[0];
  ADD_FAILURE() << found.error().message << "\n" << model.text;
  return {};
}

} // namespace heddle::test
