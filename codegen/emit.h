// Shorthand for building kernels of the scf, arith, memref and vector dialects.
#pragma once

#include "codegen/target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace heddle::codegen {

/// Builds code at one insertion point. Values named `index` are of type index; vectors have `lanes`
/// lanes unless said otherwise.
class Emit {
public:
  /// `head` begins a function: constants stand there, each of them once.
  Emit(mlir::OpBuilder &builder, mlir::Location loc, mlir::Block &head)
      : b(builder), loc(loc), head(head) {}

  mlir::OpBuilder &b;
  mlir::Location loc;

  mlir::Type f32() { return b.getF32Type(); }
  mlir::Type bf16() { return b.getBF16Type(); }
  mlir::Type i32() { return b.getI32Type(); }
  mlir::VectorType vec(mlir::Type element, int64_t width = lanes) {
    return mlir::VectorType::get({width}, element);
  }

  // Constants.
  mlir::Value constant(mlir::TypedAttr value);
  mlir::Value index(int64_t value);
  mlir::Value constant(double value); ///< f32
  mlir::Value integer(int64_t value, unsigned bits = 32);
  mlir::Value splat(double value, int64_t width = lanes); ///< vector of f32
  /// `value` in `type`: an integer, or a vector of integers.
  mlir::Value filled(mlir::Type type, int64_t value);

  // Arithmetic of indices; folds constants.
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value sub(mlir::Value a, mlir::Value b);
  mlir::Value mul(mlir::Value a, mlir::Value b);
  mlir::Value add(mlir::Value a, int64_t c) { return add(a, index(c)); }
  mlir::Value mul(mlir::Value a, int64_t c) { return mul(a, index(c)); }
  mlir::Value div(mlir::Value a, int64_t c);     ///< rounds down; not negative
  mlir::Value ceilDiv(mlir::Value a, int64_t c); ///< rounds up; not negative
  mlir::Value rem(mlir::Value a, int64_t c);
  mlir::Value min(mlir::Value a, mlir::Value b);
  mlir::Value max(mlir::Value a, mlir::Value b);
  mlir::Value less(mlir::Value a, mlir::Value b); ///< i1
  mlir::Value toIndex(mlir::Value integer);
  mlir::Value toInt(mlir::Value index, unsigned bits = 32);

  // Control flow. Bodies are called with the builder placed inside.
  using Body = llvm::function_ref<void(mlir::Value)>;
  using Carried = llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value, mlir::ValueRange)>;
  void loop(mlir::Value low, mlir::Value high, int64_t step, Body body);
  /// A loop that carries values; returns their last state.
  llvm::SmallVector<mlir::Value> loop(mlir::Value low, mlir::Value high, int64_t step,
                                      mlir::ValueRange start, Carried body);
  void when(mlir::Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr);

  // Memory. `at` are indices of the last dimensions' start.
  mlir::Value load(mlir::Value memref, mlir::ValueRange at);
  void store(mlir::Value value, mlir::Value memref, mlir::ValueRange at);
  mlir::Value loadVector(mlir::Value memref, mlir::ValueRange at, int64_t width = lanes);
  void storeVector(mlir::Value vector, mlir::Value memref, mlir::ValueRange at);
  /// Which cache a prefetch aims at.
  enum class Near { first, second };
  /// Asks for the cache line at a place that will be read, or written, later.
  void prefetch(mlir::Value memref, mlir::ValueRange at, bool write, Near near = Near::first);
  /// Only lanes below `count`; the others read as 0 and are not written.
  mlir::Value loadMasked(mlir::Value memref, mlir::ValueRange at, mlir::Value mask,
                         int64_t width = lanes);
  void storeMasked(mlir::Value vector, mlir::Value memref, mlir::ValueRange at, mlir::Value mask);
  /// A mask of the first `count` lanes.
  mlir::Value mask(mlir::Value count, int64_t width = lanes);

  // Vectors.
  mlir::Value broadcast(mlir::Value scalar, int64_t width = lanes);
  mlir::Value fma(mlir::Value a, mlir::Value b, mlir::Value c);
  mlir::Value bitcast(mlir::Value vector, mlir::VectorType type);
  /// Sum, maximum, minimum over the lanes in a fixed tree, so that every path through the code
  /// rounds alike.
  mlir::Value sumLanes(mlir::Value vector);
  mlir::Value maxLanes(mlir::Value vector);
  mlir::Value minLanes(mlir::Value vector);
  /// f32 to bf16, nearest even, subnormals and NaN kept: by integers, since the native instruction
  /// flushes subnormals. Works on scalars and vectors of any shape.
  mlir::Value toBf16(mlir::Value value);
  /// bf16 to f32.
  mlir::Value fromBf16(mlir::Value value);

  /// Places the builder behind the constants, where what it makes dominates every later use.
  void moveToHead();

private:
  mlir::Block &head;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;

  mlir::Value binary(mlir::Value a, mlir::Value b,
                     llvm::function_ref<int64_t(int64_t, int64_t)> fold,
                     llvm::function_ref<mlir::Value()> make);
};

} // namespace heddle::codegen
