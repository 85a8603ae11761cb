// Every operation, and every worked example of the theory, run by the interpreter.
#include "tests/unit/codegen/run_interpreter.h"

#include <gtest/gtest.h>

using namespace heddle::test;

namespace {

class InterpreterOp : public testing::TestWithParam<OpCase> {};

TEST_P(InterpreterOp, GivesTheExpectedValues) { checkCase(GetParam(), interpret, 1e-12); }

INSTANTIATE_TEST_SUITE_P(Ops, InterpreterOp, testing::ValuesIn(opCases()),
                         [](const auto &info) { return info.param.name; });

class InterpreterExample : public testing::TestWithParam<Example> {};

TEST_P(InterpreterExample, Holds) { GetParam().check(interpret); }

INSTANTIATE_TEST_SUITE_P(Theory, InterpreterExample, testing::ValuesIn(workedExamples()),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
