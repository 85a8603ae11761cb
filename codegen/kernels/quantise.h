// Rows of f32 on their way into blocks of signed bytes, which products with quantised weights take.
#pragma once

#include "codegen/element_types.h"
#include "codegen/lowering.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace heddle::codegen {

/// Modelled for each value.
inline constexpr int64_t quantiseFlops = 4;

/// Makes the rows of a kernel's result 0, which is in blocks of rows.
class RowQuantiser {
public:
  RowQuantiser(KernelBuilder &kernel, mlir::Value result);

  /// Emits 16 values of a row from `column` on; 0 outside of the mask, where there is one.
  using Values = llvm::function_ref<mlir::Value(mlir::Value column, mlir::Value mask)>;
  /// Emits row `row` of the result. May emit `values` twice for a column.
  void quantise(llvm::ArrayRef<mlir::Value> row, Values values);

private:
  using Value = mlir::Value;

  Value integers(int64_t value);
  Value reduce(mlir::vector::CombiningKind kind, Value vector);
  void store(Value scalar, Value at);
  void emitBlock(Values values, Value start, Value block, int64_t count);
  Value emitGroup(llvm::ArrayRef<Value> values, Value factor, Value group, Value to, Value total);
  Value sumsOfFour(llvm::ArrayRef<Value> four);
  /// A block is worked off in groups of so many vectors of 16.
  int64_t vectorsOfGroup() const { return layout.sums16 ? 4 : 2; }

  KernelBuilder &kernel;
  Emit &e;
  llvm::ArrayRef<Size> sizes;
  RowBlocks layout;
  int64_t width;
  Value output;
};

} // namespace heddle::codegen
