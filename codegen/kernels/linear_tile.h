// Tiles of linear, gated_linear and expert_linear: sums of rows against panels, and what the region
// makes of them.
#pragma once

#include "codegen/kernels/inner_product.h"

namespace heddle::codegen {

class LinearTile {
public:
  /// `firstExtra` is the operand that is the first of the region's inputs besides the products.
  LinearTile(const Products &products, const RegisterTile &registers, unsigned firstExtra,
             KernelBuilder &kernel);

  /// Where a row of the tile is read from and written to.
  struct Place {
    RowPlace input, result;
  };
  using PlaceOf = llvm::function_ref<Place(mlir::Value row)>;

  /// Emits rows [first, last) against as many panels as the register tile has from `panel` on, or
  /// the fewer that are left; panel 0 is panel `weightStart` of the weight.
  void emit(mlir::Value panel, mlir::Value weightStart, mlir::Value first, mlir::Value last,
            PlaceOf placeOf);

  /// Emits what the region makes of sums that are NaN, for a row against these panels.
  void emitNaN(mlir::Value panel, const RowPlace &result);

  /// Bytes of a worker's scratch.
  int64_t scratchBytes() const { return product->scratchBytes(registers.panels); }

private:
  using Value = mlir::Value;

  void emitRows(Value panel, int64_t panels, Value weightStart, Value first, Value last,
                PlaceOf placeOf);
  void prefetchEnds(llvm::ArrayRef<RowPlace> places, Value panel, int64_t panels);
  void emitEpilogue(const RowPlace &place, Value panel, llvm::ArrayRef<Value> sums);
  /// Runs `body` with how many panels there are from `panel` on, as many as fit the registers.
  void withPanels(Value panel, llvm::function_ref<void(int64_t)> body);

  const Products &products;
  RegisterTile registers;
  Phase phase;
  Emit &e;
  std::unique_ptr<InnerProduct> product;
  Value result;
  llvm::SmallVector<Value> extras;
};

} // namespace heddle::codegen
