// Sums of products with weights in quantised blocks.
//
// Inside a block, or a part of one that has a scale of its own, everything is an integer; what the
// scales make of it is summed in f32, block after block, k ascending. That order is the same for
// every tile, so one row gives what 512 give.
//
// Multiplies are what limits: vpdpbusd shares its ports with those of the scales and with nothing
// else here (conversions, unpacking, broadcasts). So scales are joined first where several sums
// share them, and offsets cost nothing: unsigned weights are 128 (or 32, 8) too large, and the sums
// start from that many times the row's own sum, which `quantise` has stored.
#pragma once

#include "codegen/kernels/bytes.h"
#include "codegen/kernels/inner_product.h"
#include "codegen/kernels/int8_dot.h"

namespace heddle::codegen {

/// What the formats have in common: where the rows and columns of a tile stand, and integer sums.
class BlockProduct : public InnerProduct {
public:
  BlockProduct(const Products &products, KernelBuilder &kernel);

  void takeWeight(mlir::Value panels) override;
  llvm::SmallVector<mlir::Value> emit(llvm::ArrayRef<RowPlace> rowPlaces, mlir::Value panel,
                                      int64_t panels) override;

protected:
  using Value = mlir::Value;
  using Sums = llvm::SmallVector<Value>;

  /// The f32 sums of the tile whose rows and columns were entered.
  virtual Sums tile() = 0;

  int64_t rows() const { return int64_t(rowStarts.size()); }
  int64_t columns() const { return int64_t(columnStarts.size()); }
  Sums zeros() { return Sums(rows() * columns(), e.splat(0)); }
  Sums integerZeros();

  /// Sets where the columns of a tile start: `panels` panels of every weight from `panel` on.
  void enterColumns(Value panel, int64_t panels);
  /// The f32 sums over all blocks; `block` adds one, at `rowAt` and `columnAt`.
  Sums overBlocks(int64_t length, int64_t bytes,
                  llvm::function_ref<Sums(Value, mlir::ValueRange)> block);
  /// Block `index`, of `bytes` from byte `from` of the panel on.
  void enterBlock(Value index, int64_t from, int64_t bytes);

  /// What every column has; `load` gets its bytes and where the block at hand starts.
  template <class Load>
  llvm::SmallVector<Value> ofColumns(Load load) {
    llvm::SmallVector<Value> all;
    for (int64_t c = 0; c < columns(); ++c)
      all.push_back(load(*columnBytes[c], columnAt[c]));
    return all;
  }
  /// Vectors of 64 bytes at `offset` of the block.
  llvm::SmallVector<Value> quadsAt(Value offset);
  /// Asks for what comes later of every panel, as much as `bytes` from `offset` of the block on.
  void prefetchAhead(Value offset, int64_t bytes);
  /// Every byte shifted (right where `shift` is positive, else left) and masked.
  Value bits(Value quads, int64_t shift, int64_t mask);
  llvm::SmallVector<Value> bits(llvm::ArrayRef<Value> quads, int64_t shift, int64_t mask);

  /// Integer sums that start from what every row has at `offset` of its block.
  Sums startFrom(Value offset);
  /// Adds a quad of every column (64 x i8) times that of every row at quad `quad` of the block.
  void multiplyQuad(llvm::MutableArrayRef<Value> sums, llvm::ArrayRef<Value> quads, Value quad);

  Value toFloat(Value integers);
  Value times(Value a, Value b) { return mlir::arith::MulFOp::create(e.b, e.loc, a, b); }
  llvm::SmallVector<Value> rowScales();
  /// Adds integer sums times the scales of columns and rows.
  Sums scaled(mlir::ValueRange carried, const Sums &integers, llvm::ArrayRef<Value> scales);

  Products products;
  KernelBuilder &kernel;
  Emit &e;
  Int8Dot dot;
  RowBlocks layout;
  Bytes input;
  llvm::SmallVector<Bytes, 2> weights;
  // Of the tile: where its rows and columns start, then where the block at hand does.
  llvm::SmallVector<Value> rowStarts, columnStarts, rowAt, columnAt;
  llvm::SmallVector<Bytes *> columnBytes;
};

/// Of Q8_0, Q4_0 and int8.
std::unique_ptr<InnerProduct> makeSimpleBlockProduct(const Products &products,
                                                     KernelBuilder &kernel);
/// Of Q4_K and Q6_K.
std::unique_ptr<InnerProduct> makeKBlockProduct(const Products &products, KernelBuilder &kernel);

} // namespace heddle::codegen
