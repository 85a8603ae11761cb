// The sums of linear, gated_linear and project_heads, whatever their weights are stored as. The
// kernels around them are in linear.cpp and project_heads.cpp, the choice of tiles in
// product_tiles.cpp.
#pragma once

#include "codegen/element_types.h"
#include "codegen/lowering.h"
#include "runtime/packing.h"

#include <memory>

namespace heddle::codegen {

/// A linear, gated_linear or expert_linear seen as the products it makes; or one of the products of
/// project_heads. The panels of experts' matrices stand one expert after the other.
struct Products {
  mlir::Operation *op;
  unsigned weights;   ///< 1, or 2 where it is gated
  unsigned first = 1; ///< the operand that is the first weight

  mlir::RankedTensorType input() const {
    return mlir::cast<mlir::RankedTensorType>(op->getOperand(0).getType());
  }
  mlir::RankedTensorType weight() const {
    return mlir::cast<mlir::RankedTensorType>(op->getOperand(first).getType());
  }
  int64_t experts() const { return weight().getRank() == 3 ? weight().getDimSize(0) : 1; }
  int64_t depth() const { return weight().getShape().end()[isTransposed(op, first) ? -1 : -2]; }
  int64_t columns() const { return weight().getShape().end()[isTransposed(op, first) ? -2 : -1]; }
  bool bf16() const { return weight().getElementType().isBF16(); }
  /// The format of weights in blocks; null of others.
  ir::BlocksType blocks() const {
    return mlir::dyn_cast<ir::BlocksType>(weight().getElementType());
  }
  /// Panels of one expert, where there are several.
  int64_t panels() const { return llvm::divideCeil(columns(), lanes); }
  /// Bytes of one panel.
  int64_t panelBytes() const {
    runtime::ElementType type = *elementTypeOf(weight().getElementType());
    return runtime::PanelShape{.type = type, .k = depth(), .n = columns()}.bytesPerPanel();
  }
};

/// Whether decode reads the weights from memory: smaller ones stay in the caches.
bool comesFromMemory(const Products &products);

/// Bytes ahead that a tile of decode asks for of a weight it reads from memory, for the
/// second-level cache.
inline constexpr int64_t prefetchDistance = 16 * 1024;
/// Whether it asks. The hardware looks ahead as well, but not far enough for code that multiplies
/// every line with several rows; where it does, asking would only take the buffers that it needs.
bool prefetchesAhead(const Products &products, Phase phase, int64_t rows);

/// Where a row of a tensor lies: all indices but the last.
using RowPlace = llvm::SmallVector<mlir::Value, 4>;

/// Makes the sums of tiles in one kernel. Its constructor binds the input and the weights.
class InnerProduct {
public:
  virtual ~InnerProduct() = default;

  /// Bytes of a worker's scratch for a tile of `panels` panels of every weight.
  virtual int64_t scratchBytes(int64_t /*panels*/) const { return 0; }
  /// Takes the panels of another weight instead, of the same type and depth: a flat memref.
  virtual void takeWeight(mlir::Value panels) = 0;
  /// Emits what all rows of a tile share that takes `panels` panels from `panel` on.
  virtual void enterPanels(mlir::Value /*panel*/, int64_t /*panels*/) {}

  /// Emits the sums of some rows of the input with `panels` panels of every weight from `panel` on:
  /// vectors of 16 columns, row by row; of each row those of the first weight come first.
  virtual llvm::SmallVector<mlir::Value> emit(llvm::ArrayRef<RowPlace> rows, mlir::Value panel,
                                              int64_t panels) = 0;
};

/// The block of a product that is summed up in registers.
struct RegisterTile {
  int64_t rows, panels;

  /// Notes it on `op` for the plan, with what else the kernel is told.
  void write(mlir::Operation *op, llvm::ArrayRef<mlir::NamedAttribute> others = {}) const;
  /// Reads it from the plan of an operation whose products include these; emits an error where
  /// there is none that can be, or where the input is not as weights in blocks take it.
  static mlir::FailureOr<RegisterTile> read(const Products &products);
};

/// The one that is fast for `products`.
RegisterTile chooseTile(const Products &products, const PlanContext &context);

/// Rows that are summed up together.
struct RowBlock {
  llvm::SmallVector<mlir::Value> rows;
  /// i1: whether the row is there; null where it always is. The last row stands for one that is
  /// not.
  llvm::SmallVector<mlir::Value> present;

  /// Runs `body` for all rows that are there.
  void forEach(Emit &emit, llvm::function_ref<void(int64_t)> body) const;
};

/// Runs `body` for rows [first, last): in blocks of the tile's, then in smaller ones. Rows that are
/// too few for a block and too many for the next smaller one make a block as well: the weight is
/// read as seldom as can be, and there is less code.
void forRowBlocks(Emit &emit, const RegisterTile &tile, Phase phase, mlir::Value first,
                  mlir::Value last, llvm::function_ref<void(const RowBlock &)> body);

/// Of weights of any type.
std::unique_ptr<InnerProduct> makeProduct(const Products &products, KernelBuilder &kernel);

/// Of weights in quantised blocks.
std::unique_ptr<InnerProduct> makeBlockProduct(const Products &products, KernelBuilder &kernel);

/// Of weights in f32 or bf16.
std::unique_ptr<InnerProduct> makeFloatProduct(const Products &products, KernelBuilder &kernel);

} // namespace heddle::codegen
