// Passes of code generation, in the order in which they run.
#ifndef HEDDLE_CODEGEN_PASSES
#define HEDDLE_CODEGEN_PASSES

include "mlir/Pass/PassBase.td"

def PrepareKernels : Pass<"prepare-kernels", "::mlir::func::FuncOp"> {
  let summary = "bring a graph, fused or not, to the operations that have kernels";
  let description = [{
    Elementwise operations become `map`, products with a weight `linear` with an empty epilogue, so that the unfused
    graph runs on the very kernels of the fused one. The roundings to bf16 that products imply become
    operations of their own, made once for all products of a value, or go into the operation that makes
    a value which is only read rounded. Results of the model get buffers of their own.
    Example: tests/lit/codegen/prepare-kernels.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
}

def Plan : Pass<"plan", "::mlir::func::FuncOp"> {
  let summary = "decide on kernels, tiles, layouts and the slots of the arena";
  let description = [{
    Every decision is noted on the operation it is for: `heddle.kernel` (kernel and tiles), `heddle.buffers` and
    `heddle.temporaries` (slots of the arena), `heddle.rows_first` (layout). Values whose lifetimes do not meet share a slot.
    Reads `heddle.isa` and `heddle.phase` of the module.
    Example: tests/lit/codegen/plan.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect"];
}

def LowerToLoops : Pass<"lower-to-loops", "::mlir::ModuleOp"> {
  let summary = "build the kernels and the program that launches them";
  let description = [{
    The planned `@forward` becomes one `heddle.program`; kernels are functions of upstream dialects, built once for all
    operations that differ only in the buffers they use.
    Example: tests/lit/codegen/launches.mlir
  }];
  let dependentDialects = ["::heddle::ir::HeddleDialect", "::mlir::func::FuncDialect", "::mlir::scf::SCFDialect",
                           "::mlir::memref::MemRefDialect", "::mlir::vector::VectorDialect",
                           "::mlir::x86vector::X86VectorDialect", "::mlir::LLVM::LLVMDialect"];
}

#endif // HEDDLE_CODEGEN_PASSES
