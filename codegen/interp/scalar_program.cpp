// Scalar code of fused regions on doubles.
#include "codegen/interp/scalar_program.h"

#include "ir/ops.h"
#include "runtime/reference/elementwise.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

namespace {

using Unary = double (*)(double);
using Binary = double (*)(double, double);

const llvm::StringMap<Unary> &unaryFunctions() {
  static const llvm::StringMap<Unary> table = {
      {"arith.negf", reference::neg},
      {"math.absf", reference::absolute},
      {"math.exp", reference::exponential},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.log", reference::logarithm},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.sqrt", reference::squareRoot},
      {"math.rsqrt", reference::rsqrt},
      {"math.sin", reference::sine},
      {"math.cos", reference::cosine},
      {"math.tanh", reference::hyperbolicTangent},
      {"math.erf", reference::errorFunction},
      {"math.erfc", [](double x) { return std::erfc(x); }},
  };
  return table;
}

const llvm::StringMap<Binary> &binaryFunctions() {
  static const llvm::StringMap<Binary> table = {
      {"arith.addf", reference::add},
      {"arith.subf", reference::sub},
      {"arith.mulf", reference::mul},
      {"arith.divf", reference::div},
      {"arith.maximumf", reference::max},
      {"arith.minimumf", reference::min},
      {"arith.maxnumf", [](double x, double y) { return std::fmax(x, y); }},
      {"arith.minnumf", [](double x, double y) { return std::fmin(x, y); }},
      {"math.powf", [](double x, double y) { return std::pow(x, y); }},
      {"arith.addi", reference::addI32},
      {"arith.subi", reference::subI32},
      {"arith.muli", reference::mulI32},
      {"arith.maxsi", reference::max},
      {"arith.minsi", reference::min},
      {"arith.andi", reference::logicalAnd},
      {"arith.ori", reference::logicalOr},
      {"arith.xori", [](double x, double y) { return double((x != 0) != (y != 0)); }},
  };
  return table;
}

/// The predicates of arith.cmpf share four bits: less, greater and equal, and whether NaN counts.
double compareFloats(arith::CmpFPredicate predicate, double x, double y) {
  bool unordered = std::isnan(x) || std::isnan(y);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return x == y;
  case arith::CmpFPredicate::OGT:
    return x > y;
  case arith::CmpFPredicate::OGE:
    return x >= y;
  case arith::CmpFPredicate::OLT:
    return x < y;
  case arith::CmpFPredicate::OLE:
    return x <= y;
  case arith::CmpFPredicate::ONE:
    return !unordered && x != y;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || x == y;
  case arith::CmpFPredicate::UGT:
    return !(x <= y);
  case arith::CmpFPredicate::UGE:
    return !(x < y);
  case arith::CmpFPredicate::ULT:
    return !(x >= y);
  case arith::CmpFPredicate::ULE:
    return !(x > y);
  case arith::CmpFPredicate::UNE:
    return x != y;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("every predicate is handled");
}

double compareIntegers(arith::CmpIPredicate predicate, double x, double y) {
  auto bits = [](double value) { return double(uint32_t(int32_t(value))); };
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return x == y;
  case arith::CmpIPredicate::ne:
    return x != y;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return bits(x) < bits(y);
  case arith::CmpIPredicate::ule:
    return bits(x) <= bits(y);
  case arith::CmpIPredicate::ugt:
    return bits(x) > bits(y);
  case arith::CmpIPredicate::uge:
    return bits(x) >= bits(y);
  }
  llvm_unreachable("every predicate is handled");
}

Error unknown(Operation &op) {
  return dataError("'" + op.getName().getStringRef().str() +
                   "' has no meaning in the region of a fused operation");
}

} // namespace

Result<ScalarProgram::Function> ScalarProgram::functionOf(Operation &op) {
  StringRef name = op.getName().getStringRef();
  Type type = op.getNumResults() == 1 ? op.getResult(0).getType() : Type();
  bool known = type && (isa<FloatType>(type) || type.isInteger(1) || type.isInteger(32));
  if (!known)
    return unknown(op);
  // Additions of truth values would have to wrap at one bit, and nobody writes them.
  if (isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op) && !type.isInteger(32))
    return unknown(op);
  if (isa<arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op) && !type.isInteger(1))
    return unknown(op);
  if (auto found = unaryFunctions().find(name); found != unaryFunctions().end())
    return Function([fn = found->second](const double *x) { return fn(x[0]); });
  if (auto found = binaryFunctions().find(name); found != binaryFunctions().end())
    return Function([fn = found->second](const double *x) { return fn(x[0], x[1]); });
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    double value = 0;
    if (auto real = dyn_cast<FloatAttr>(constant.getValue()))
      value = real.getValueAsDouble();
    else if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
      value =
          type.isInteger(1) ? double(integer.getValue().getBoolValue()) : double(integer.getInt());
    return Function([value](const double *) { return value; });
  }
  if (auto compare = dyn_cast<arith::CmpFOp>(op))
    return Function([predicate = compare.getPredicate()](const double *x) {
      return compareFloats(predicate, x[0], x[1]);
    });
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return Function([predicate = compare.getPredicate()](const double *x) {
      return compareIntegers(predicate, x[0], x[1]);
    });
  if (isa<arith::SelectOp>(op))
    return Function([](const double *x) { return x[0] != 0 ? x[1] : x[2]; });
  if (isa<math::FmaOp>(op))
    return Function([](const double *x) { return std::fma(x[0], x[1], x[2]); });
  if (isa<arith::TruncFOp>(op) && type.isBF16())
    return Function([](const double *x) { return reference::roundToBf16(x[0]); });
  // A truth value is 0 or 1, an id its own value: nothing to do.
  if (isa<arith::ExtFOp, arith::TruncFOp, arith::SIToFPOp, arith::UIToFPOp, arith::ExtUIOp>(op)) {
    bool negative = isa<arith::UIToFPOp>(op) && !op.getOperand(0).getType().isInteger(1);
    if (!negative)
      return Function([](const double *x) { return x[0]; });
  }
  return unknown(op);
}

Result<ScalarProgram> ScalarProgram::create(Block &body) {
  ScalarProgram program;
  llvm::DenseMap<Value, size_t> places;
  for (BlockArgument argument : body.getArguments())
    places[argument] = program.arguments++;
  size_t widest = 0;
  for (Operation &op : body.without_terminator()) {
    Result<Function> function = functionOf(op);
    if (!function)
      return function.error();
    Instruction instruction{*std::move(function), {}};
    for (Value operand : op.getOperands())
      instruction.operands.push_back(places.lookup(operand));
    places[op.getResult(0)] = program.arguments + program.instructions.size();
    widest = std::max(widest, instruction.operands.size());
    program.instructions.push_back(std::move(instruction));
  }
  program.yielded = places.lookup(body.getTerminator()->getOperand(0));
  program.values.resize(program.arguments + program.instructions.size());
  program.gathered.resize(widest);
  return program;
}

double ScalarProgram::operator()(std::span<const double> inputs) {
  std::copy(inputs.begin(), inputs.end(), values.begin());
  size_t next = arguments;
  for (const Instruction &instruction : instructions) {
    for (size_t i = 0; i < instruction.operands.size(); ++i)
      gathered[i] = values[instruction.operands[i]];
    values[next++] = instruction.function(gathered.data());
  }
  return values[yielded];
}

} // namespace heddle::codegen
