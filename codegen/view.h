// Where tensors lie in memory: each is a strided view of the buffer of some value, its root.
// Operations that only rename elements (split_heads, slice, transpose ...) become views and cost
// nothing, in fused and unfused code alike.
#pragma once

#include "codegen/dims.h"

namespace heddle::codegen {

/// A tensor as a strided window into the buffer of `root`, in elements.
struct View {
  mlir::Value root;
  llvm::SmallVector<Size> sizes;
  llvm::SmallVector<Size> strides;
  Size offset;

  /// Whether the elements follow each other in row-major order.
  bool isContiguous() const;
  /// Elements of the buffer up to the last one of the view.
  Size reach() const;
};

/// Name of the attribute on an operation whose result `[H, T, d]` is stored as `[T, H, d]`.
inline constexpr llvm::StringLiteral rowsLayoutAttrName = "heddle.rows_first";

class ViewAnalysis {
public:
  ViewAnalysis(mlir::func::FuncOp function, const DimAnalysis &dims);

  const View &of(mlir::Value tensor) const;
  /// Whether `op` only renames elements: its result shares the buffer of its operand.
  bool isView(mlir::Operation *op) const;

private:
  std::optional<View> derive(mlir::Operation *op) const;

  const DimAnalysis &dims;
  llvm::DenseMap<mlir::Value, View> views;
};

/// Strides of a buffer of its own for `sizes`, row-major.
llvm::SmallVector<Size> rowMajor(llvm::ArrayRef<Size> sizes);

} // namespace heddle::codegen
