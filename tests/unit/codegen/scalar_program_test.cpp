// The scalar code of regions on doubles.
#include "codegen/interp/scalar_program.h"
#include "tests/unit/codegen/run_interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

using namespace heddle;
using namespace heddle::test;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// What `%r` is after `code`, for the arguments `%x, %y: f32, %i, %j: i32, %c: i1`.
double run(const std::string &code, const std::string &type, double x, double y) {
  auto module = parse(R"(
    func.func @f(%a: tensor<f32>, %i: tensor<i32>, %c: tensor<i1>) -> tensor<)" +
                      type + R"(> {
      %r = heddle.map (%a, %a, %i, %i, %c) : (tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i1>) -> tensor<)" +
                      type + R"(> {
      ^bb0(%x: f32, %y: f32, %i0: i32, %j0: i32, %c0: i1):
        )" + code +
                      "\nheddle.yield %r : " + type + "\n}\nreturn %r : tensor<" + type + ">\n}");
  EXPECT_TRUE(module) << module.error().message;
  if (!module)
    return nan;
  double result = nan;
  (*module)->walk([&](mlir::Operation *op) {
    if (op->getName().getStringRef() != "heddle.map")
      return;
    auto program = codegen::ScalarProgram::create(op->getRegion(0).front());
    ASSERT_TRUE(program) << program.error().message;
    double arguments[] = {x, y, x, y, x};
    result = (*program)(arguments);
  });
  return result;
}

TEST(ScalarProgram, KnowsTheFunctionsOfRegions) {
  auto unary = [](const std::string &op, double x) {
    return run("%r = " + op + " %x : f32", "f32", x, 0);
  };
  auto binary = [](const std::string &op, double x, double y) {
    return run("%r = " + op + " %x, %y : f32", "f32", x, y);
  };
  EXPECT_EQ(unary("arith.negf", 2), -2);
  EXPECT_EQ(unary("math.absf", -2), 2);
  EXPECT_EQ(unary("math.exp", 1), std::exp(1.0));
  EXPECT_EQ(unary("math.exp2", 3), 8);
  EXPECT_EQ(unary("math.expm1", 1e-20), 1e-20);
  EXPECT_EQ(unary("math.log", 1), 0);
  EXPECT_EQ(unary("math.log1p", 1e-20), 1e-20);
  EXPECT_EQ(unary("math.log2", 8), 3);
  EXPECT_EQ(unary("math.sqrt", 9), 3);
  EXPECT_EQ(unary("math.rsqrt", 4), 0.5);
  EXPECT_EQ(unary("math.sin", 0), 0);
  EXPECT_EQ(unary("math.cos", 0), 1);
  EXPECT_EQ(unary("math.tanh", 100), 1);
  EXPECT_EQ(unary("math.erf", 0), 0);
  EXPECT_EQ(unary("math.erfc", 0), 1);
  EXPECT_EQ(binary("arith.addf", 2, 3), 5);
  EXPECT_EQ(binary("arith.subf", 2, 3), -1);
  EXPECT_EQ(binary("arith.mulf", 2, 3), 6);
  EXPECT_EQ(binary("arith.divf", 3, 2), 1.5);
  EXPECT_EQ(binary("arith.maximumf", 2, 3), 3);
  EXPECT_TRUE(std::isnan(binary("arith.maximumf", nan, 3)));
  EXPECT_EQ(binary("arith.minimumf", 2, 3), 2);
  EXPECT_EQ(binary("arith.maxnumf", nan, 3), 3);
  EXPECT_EQ(binary("arith.minnumf", nan, 3), 3);
  EXPECT_EQ(binary("math.powf", 2, 10), 1024);
  EXPECT_EQ(run("%r = math.fma %x, %y, %x : f32", "f32", 2, 3), 8);
}

TEST(ScalarProgram, RoundsNothingButWhatSaysBf16) {
  double fine = 1 + 1e-12;
  EXPECT_EQ(run("%z = arith.constant 0.0 : f32\n%r = arith.addf %x, %z : f32", "f32", fine, 0),
            fine);
  EXPECT_EQ(run("%h = arith.truncf %x : f32 to bf16\n%r = arith.extf %h : bf16 to f32", "f32",
                1.00390625, 0),
            1);
  // The constant is the f32 next to 0.1, not 0.1.
  EXPECT_EQ(run("%r = arith.constant 0.1 : f32", "f32", 0, 0), double(0.1f));
}

TEST(ScalarProgram, ComparesWithAndWithoutNan) {
  auto compare = [](const std::string &predicate, double x, double y) {
    return run("%r = arith.cmpf " + predicate + ", %x, %y : f32", "i1", x, y);
  };
  struct Row {
    const char *name;
    bool less, same, greater, unordered;
  };
  for (auto [name, less, same, greater, unordered] :
       {Row{"oeq", false, true, false, false}, Row{"ogt", false, false, true, false},
        Row{"oge", false, true, true, false}, Row{"olt", true, false, false, false},
        Row{"ole", true, true, false, false}, Row{"one", true, false, true, false},
        Row{"ord", true, true, true, false}, Row{"ueq", false, true, false, true},
        Row{"ugt", false, false, true, true}, Row{"uge", false, true, true, true},
        Row{"ult", true, false, false, true}, Row{"ule", true, true, false, true},
        Row{"une", true, false, true, true}, Row{"uno", false, false, false, true},
        Row{"true", true, true, true, true}, Row{"false", false, false, false, false}}) {
    EXPECT_EQ(compare(name, 1, 2), less) << name;
    EXPECT_EQ(compare(name, 2, 2), same) << name;
    EXPECT_EQ(compare(name, 3, 2), greater) << name;
    EXPECT_EQ(compare(name, nan, 2), unordered) << name;
    EXPECT_EQ(compare(name, 2, nan), unordered) << name;
  }
}

TEST(ScalarProgram, CountsIn32Bits) {
  auto integer = [](const std::string &op, double x, double y, const std::string &type = "i32") {
    return run("%r = " + op + " %i0, %j0 : i32", type, x, y);
  };
  EXPECT_EQ(integer("arith.addi", 2147483647, 1), -2147483648.0);
  EXPECT_EQ(integer("arith.subi", -2147483648.0, 1), 2147483647);
  EXPECT_EQ(integer("arith.muli", 65536, 65536), 0);
  EXPECT_EQ(integer("arith.maxsi", -1, 1), 1);
  EXPECT_EQ(integer("arith.minsi", -1, 1), -1);
  EXPECT_EQ(integer("arith.cmpi slt,", -1, 1, "i1"), 1);
  EXPECT_EQ(integer("arith.cmpi ult,", -1, 1, "i1"), 0) << "-1 is large without a sign";
  EXPECT_EQ(integer("arith.cmpi ne,", 2, 2, "i1"), 0);
  EXPECT_EQ(run("%r = arith.sitofp %i0 : i32 to f32", "f32", -3, 0), -3);
}

TEST(ScalarProgram, TruthValuesAreZeroAndOne) {
  EXPECT_EQ(run("%t = arith.constant true\n%r = arith.xori %c0, %t : i1", "i1", 1, 0), 0);
  EXPECT_EQ(run("%t = arith.constant true\n%r = arith.andi %c0, %t : i1", "i1", 1, 0), 1);
  EXPECT_EQ(run("%t = arith.constant false\n%r = arith.ori %c0, %t : i1", "i1", 0, 0), 0);
  EXPECT_EQ(run("%r = arith.uitofp %c0 : i1 to f32", "f32", 1, 0), 1);
  // The value that was not chosen has no influence.
  EXPECT_EQ(run("%r = arith.select %c0, %x, %y : f32", "f32", 1, nan), 1);
}

} // namespace
