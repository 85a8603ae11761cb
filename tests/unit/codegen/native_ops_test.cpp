// Every operation, and every worked example of the theory, as native code: on each instruction set,
// by both programs, with one thread and with two.
#include "tests/unit/codegen/run_native.h"

#include "codegen/jit/machine.h"

#include <gtest/gtest.h>

namespace heddle::test {
namespace {

struct Mode {
  const char *isa;
  bool decode;
  int threads;
};

constexpr Mode modes[] = {{"avx2", false, 2}, {"avx512", true, 1}, {"avx512_bf16", false, 1}};

class NativeOp : public testing::TestWithParam<OpCase> {};

TEST_P(NativeOp, GivesTheExpectedValues) {
  for (Mode mode : modes) {
    if (!codegen::selectTarget(mode.isa))
      continue;
    SCOPED_TRACE(mode.isa);
    JitOptions options{.isa = mode.isa, .threads = mode.threads, .decode = mode.decode};
    checkCase(
        GetParam(),
        [&](const Model &model, const std::vector<Call> &calls) {
          return runNative(model, calls, options);
        },
        1e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, NativeOp, testing::ValuesIn(opCases()),
                         [](const auto &info) { return info.param.name; });

class NativeExample : public testing::TestWithParam<Example> {};

TEST_P(NativeExample, Holds) {
  GetParam().check([](const Model &model, const std::vector<Call> &calls) {
    return runNative(model, calls, {});
  });
}

INSTANTIATE_TEST_SUITE_P(Theory, NativeExample, testing::ValuesIn(workedExamples()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace heddle::test
