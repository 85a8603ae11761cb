// Elementwise operations on their way into one region of scalar code: which ones belong together,
// what they read, and the region itself. All fusions use it.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"

namespace heddle::passes {

/// Whether `op` computes every element from the same element of its operands: an elementwise
/// operation, or a map that earlier ones became.
bool isScalarCode(mlir::Operation *op);

/// Whether computing `op` costs no more than reading its result: no division, root or
/// transcendental.
bool isCheap(mlir::Operation *op);

/// Whether elements of a tensor of shape `from` are used more than once where it meets shape `to`.
bool isBroadcast(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// The constant that fills all of `value`, or null.
mlir::TypedAttr splatOf(mlir::Value value);

/// The shape of a tensor.
llvm::ArrayRef<int64_t> shapeOf(mlir::Value value);

/// Operations of one block that compute `result` together. Operations are added; then `extras`
/// tells what they read, `emit` writes the region, and `eraseUnused` removes what it replaces.
struct ScalarCode {
  /// Tensors whose elements are the first arguments of the region.
  llvm::SmallVector<mlir::Value> products;
  llvm::SetVector<mlir::Operation *> ops;
  mlir::Value result;
  /// Values to be read as others.
  llvm::DenseMap<mlir::Value, mlir::Value> aliases;

  /// Adds producers of what is read, and theirs, as long as `wanted` takes them and, unless
  /// `evenIfShared`, all their users are in the code. A shared one is computed here once more.
  void absorbProducers(llvm::function_ref<bool(mlir::Operation *)> wanted,
                       bool evenIfShared = false);

  /// The operations in the order of the text.
  llvm::SmallVector<mlir::Operation *> sorted() const;

  /// The tensors read besides the products, each once. Constants that are one value are not among
  /// them, and an `expand` is looked through: regions broadcast by themselves.
  llvm::SmallVector<mlir::Value> extras() const;

  /// Fills the empty `region`: arguments for products and extras, scalar code, yield.
  void emit(mlir::Region &region) const;

  /// What is read where an operation says `operand`.
  mlir::Value resolve(mlir::Value operand) const;
};

/// The number of tensors that `op` reads, constants of one value apart.
unsigned countInputs(mlir::Operation *op);

/// Erases those of `ops` that nothing else uses, and then those of their operands that nothing uses
/// any more.
void eraseUnused(llvm::ArrayRef<mlir::Operation *> ops);

} // namespace heddle::passes
