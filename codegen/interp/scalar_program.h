// The region of a fused operation, run on doubles.
#pragma once

#include "runtime/result.h"

#include "mlir/IR/Block.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace heddle::codegen {

/// Scalar code of the arith and math dialects as a list of instructions. Values are doubles
/// whatever their type says: floats are never rounded (but for a truncation to bf16, which says
/// so), integers are exact and wrap at 32 bits.
class ScalarProgram {
public:
  /// The code of `body`. An operation that has no meaning here is an error.
  static Result<ScalarProgram> create(mlir::Block &body);

  /// What the body yields for these arguments. Not for several threads at once.
  double operator()(std::span<const double> arguments);

private:
  using Function = std::function<double(const double *operands)>;
  struct Instruction {
    Function function;
    std::vector<size_t> operands;
  };

  static Result<Function> functionOf(mlir::Operation &op);

  std::vector<Instruction> instructions;
  std::vector<double> values; ///< arguments, then the result of each instruction
  std::vector<double> gathered;
  size_t arguments = 0;
  size_t yielded = 0;
};

} // namespace heddle::codegen
