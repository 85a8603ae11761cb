// How operations take part in code generation. Models of this interface are attached from outside
// (codegen/kernels), so that the dialect knows nothing of it.
#ifndef HEDDLE_CODEGEN_INTERFACES
#define HEDDLE_CODEGEN_INTERFACES

include "mlir/IR/OpBase.td"

def Heddle_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::heddle::codegen";
  let description = [{
    An operation that becomes one or more phases of the program, each a kernel over a grid of tiles.
  }];
  let methods = [
    InterfaceMethod<
      "Decides on kernel and tiles and notes them as attributes of the operation.", "void", "plan",
      (ins "const ::heddle::codegen::PlanContext &":$context), [{}], [{ (void)context; }]>,
    InterfaceMethod<
      "Sizes in bytes of the buffers that its phases need between them.",
      "::llvm::SmallVector<::heddle::codegen::Size>", "temporaries",
      (ins "const ::heddle::codegen::PlanContext &":$context), [{}], [{ return {}; }]>,
    InterfaceMethod<
      "Whether result `index` needs no buffer because nothing reads it from memory.", "bool",
      "isElided", (ins "unsigned":$index), [{}], [{ return false; }]>,
    InterfaceMethod<
      "Builds the kernels and adds their launches. Two operations that differ only in which buffers "
      "they use are lowered once; so everything must be reached through the lowering.",
      "::llvm::LogicalResult", "lower", (ins "::heddle::codegen::Lowering &":$lowering)>
  ];
}

#endif // HEDDLE_CODEGEN_INTERFACES
