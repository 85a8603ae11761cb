// What the dynamic dimensions of a graph stand for: every `?` as a size in terms of the
// dimensions that the caller of the model decides.
#pragma once

#include "codegen/size.h"
#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace heddle::codegen {

/// An error unless `function` can be a model: it has a body without branches.
mlir::LogicalResult checkBody(mlir::func::FuncOp function);

class DimAnalysis {
public:
  /// Follows the dimensions through `function`. Where two dynamic dimensions must be equal and
  /// cannot be shown to be, an error is emitted at the operation.
  static mlir::FailureOr<DimAnalysis> run(mlir::func::FuncOp function);

  /// The sizes of all dimensions of a tensor.
  llvm::ArrayRef<Size> sizes(mlir::Value tensor) const;
  /// The argument that a value of type `!heddle.sequences` comes from, and whether it describes its
  /// key view rather than its tokens.
  struct Rows {
    uint32_t argument = 0;
    bool keys = false;
  };
  Rows rows(mlir::Value sequences) const { return sequencesOf.lookup(sequences); }

  /// The size of a dimension of kind `kind` of argument `input`; adds it to the table if need be.
  Size dim(runtime::DimKind kind, uint32_t input = 0, uint32_t axis = 0);

  /// Positions of a slot of the cache; of graphs that have one.
  Size context() const;

  /// How many sequences argument `input` has; of arguments that describe the keys of an attention
  /// by token rows, or that may have others than its queries.
  Size sequences(uint32_t input) const;
  /// Whether a query's sequence may be none of those that describe the keys of `attention`.
  bool mayLackKeys(ir::AttentionOp attention) const;

  llvm::ArrayRef<runtime::Dim> table() const { return dims; }

private:
  mlir::LogicalResult visit(mlir::Operation *op);
  /// The sizes of what an append gives of the cache.
  mlir::LogicalResult visitAppend(ir::CacheAppendInterface append);
  /// The result of products with experts' matrices.
  mlir::LogicalResult visitExperts(mlir::Operation *op, mlir::Value ids, mlir::ValueRange extras);
  void visitArguments(mlir::func::FuncOp function);
  mlir::LogicalResult set(mlir::Operation *op, llvm::SmallVector<Size> sizes);
  mlir::LogicalResult unify(mlir::Operation *op, const Size &a, const Size &b);
  /// Makes every one of `tensors` broadcast to `sizes`; what the types leave open, the run checks.
  mlir::LogicalResult meet(mlir::Operation *op, mlir::ValueRange tensors,
                           llvm::ArrayRef<Size> sizes);
  /// The same for the conditions of a mask on scores of sizes `[.., T, S]`.
  mlir::LogicalResult meetConditions(mlir::Operation *op, const ir::MaskConditions &mask,
                                     llvm::ArrayRef<Size> scores);
  mlir::FailureOr<llvm::SmallVector<Size>> broadcast(mlir::Operation *op,
                                                     mlir::ValueRange operands);
  Size rowCount(mlir::Value sequences);
  /// `size` with every alias replaced by what it stands for.
  Size resolve(const Size &size) const;

  std::vector<runtime::Dim> dims;
  llvm::DenseMap<uint32_t, Size> aliases; ///< of dimensions of tensor arguments
  bool changed = false;                   ///< whether this round found a new alias
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Size>> sizesOf;
  llvm::DenseMap<mlir::Value, Rows> sequencesOf;
};

} // namespace heddle::codegen
