// From a launch in the IR to a step the runtime can run.
#pragma once

#include "codegen/size.h"
#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heddle::codegen {

/// The name of a place in text, "cache_keys"; empty of parameters and constants.
llvm::StringRef nameOf(runtime::Source source);

/// Reads launches of `op`, whose dimensions, arguments, results and slots `program` has already.
/// Parameters and constants are added to it as launches name them. What a launch says is checked
/// against the kernel's declaration; an error is emitted at the launch.
class LaunchReader {
public:
  LaunchReader(ir::ProgramOp op, runtime::Program &program)
      : op(op), symbols(op->getParentOp()), program(program) {}

  mlir::FailureOr<runtime::Step> read(ir::LaunchOp launch);

private:
  /// The launch being read, its kernel, the first dimension that the kernel sees, and the place
  /// among the operands.
  struct Place {
    ir::LaunchOp launch;
    mlir::func::FuncOp kernel;
    uint32_t firstDim;
    unsigned index;
  };

  /// Begins an error about `launch`.
  static mlir::InFlightDiagnostic wrong(ir::LaunchOp launch);

  mlir::FailureOr<Size> readSize(ir::LaunchOp launch, llvm::StringRef text);
  mlir::LogicalResult readNumbers(ir::LaunchOp launch, runtime::Step &step);
  mlir::FailureOr<runtime::Operand> readOperand(Place place, mlir::Attribute attribute);
  mlir::FailureOr<runtime::Operand> readParam(Place place, mlir::DictionaryAttr attribute);
  mlir::FailureOr<runtime::Operand> readConstant(Place place, mlir::DenseElementsAttr value);

  // What the kernel declares: launch_contract.cpp.
  mlir::LogicalResult checkContract(Place place, const runtime::Step &step);
  bool has(Place place, llvm::StringRef name, mlir::Attribute what, runtime::Operand operand);
  mlir::LogicalResult checkTaken(Place place, runtime::Operand operand);
  mlir::LogicalResult checkPhase(Place place, const runtime::Step &step);
  std::optional<runtime::ElementType> elementOf(runtime::Operand operand) const;
  std::vector<Size> bytesOf(runtime::Operand operand) const;

  ir::ProgramOp op;
  mlir::SymbolTable symbols;
  runtime::Program &program;

  /// What launches of the present phase use, and whether they write it.
  struct Use {
    runtime::Operand operand;
    bool written;
  };
  std::vector<Use> phase;
};

} // namespace heddle::codegen
