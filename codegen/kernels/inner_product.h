// The sums of linear and gated_linear, whatever their weights are stored as. The kernel around
// them, tiles and epilogue, is in linear.cpp.
#pragma once

#include "codegen/element_types.h"
#include "codegen/lowering.h"
#include "runtime/packing.h"

#include <memory>

namespace heddle::codegen {

/// A linear or gated_linear seen as the products it makes.
struct Products {
  mlir::Operation *op;
  unsigned weights; ///< 1, or 2 where it is gated

  mlir::RankedTensorType input() const {
    return mlir::cast<mlir::RankedTensorType>(op->getOperand(0).getType());
  }
  mlir::RankedTensorType weight() const {
    return mlir::cast<mlir::RankedTensorType>(op->getOperand(1).getType());
  }
  bool transposed() const { return op->hasAttr("transpose_rhs"); }
  int64_t depth() const { return weight().getDimSize(transposed() ? 1 : 0); }
  int64_t columns() const { return weight().getDimSize(transposed() ? 0 : 1); }
  bool bf16() const { return weight().getElementType().isBF16(); }
  /// The format of weights in blocks; null of others.
  ir::BlocksType blocks() const {
    return mlir::dyn_cast<ir::BlocksType>(weight().getElementType());
  }
  int64_t panels() const { return llvm::divideCeil(columns(), lanes); }
  /// Bytes of one panel.
  int64_t panelBytes() const {
    runtime::ElementType type = *elementTypeOf(weight().getElementType());
    return runtime::PanelShape{type, depth(), columns()}.bytesPerPanel();
  }
};

/// Makes the sums of tiles in one kernel. Its constructor binds the input and the weights.
class InnerProduct {
public:
  virtual ~InnerProduct() = default;

  /// Bytes of a worker's scratch for a tile of `panels` panels of every weight.
  virtual int64_t scratchBytes(int64_t /*panels*/) const { return 0; }
  /// Emits what all rows of a tile share that takes `panels` panels from `panel` on.
  virtual void enterPanels(mlir::Value /*panel*/, int64_t /*panels*/) {}

  /// Emits the sums of some rows of the input, in its part `leading`, with `panels` panels of every
  /// weight from `panel` on: vectors of 16 columns, row by row; of each row those of the first
  /// weight come first.
  virtual llvm::SmallVector<mlir::Value> emit(llvm::ArrayRef<mlir::Value> leading,
                                              llvm::ArrayRef<mlir::Value> rows, mlir::Value panel,
                                              int64_t panels) = 0;
};

/// Of weights in quantised blocks.
std::unique_ptr<InnerProduct> makeBlockProduct(const Products &products, KernelBuilder &kernel);

/// Of weights in f32 or bf16.
std::unique_ptr<InnerProduct> makeFloatProduct(const Products &products, KernelBuilder &kernel);

} // namespace heddle::codegen
