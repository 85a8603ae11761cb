// Operations of the heddle dialect.
#pragma once

#include "ir/dialect.h"

#include "mlir/IR/BuiltinOps.h"

#include "ir/cache_interface.h.inc"

#define GET_OP_CLASSES
#include "ir/operations.h.inc"

namespace heddle::ir {

/// The shape two shapes broadcast to, aligned from the right: dimensions meet when they are equal,
/// or one is a static 1 or missing. A static dimension wins over a dynamic one. Fails where they do
/// not meet.
mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> lhs,
                                                            llvm::ArrayRef<int64_t> rhs);

/// Whether a tensor of shape `from` broadcasts to one of shape `to`, and leaves it as it is.
bool broadcastsTo(llvm::ArrayRef<int64_t> from, llvm::ArrayRef<int64_t> to);

/// The conditions of `mask` and of `attention`; values may be null.
struct MaskConditions {
  mlir::Value queries, keys, mask, querySegments, keySegments;
  bool causal = false;
  std::optional<int64_t> window, prefix, chunk;

  /// Whether there is any.
  bool any() const {
    return queries || keys || mask || querySegments || keySegments || causal || window || prefix ||
           chunk;
  }
};

/// Those of an operation, or of the adaptor of one.
template <class Op>
MaskConditions maskConditions(Op op) {
  return {op.getQueries(),       op.getKeys(),        op.getMask(),
          op.getQuerySegments(), op.getKeySegments(), op.getCausal(),
          op.getWindow(),        op.getPrefix(),      op.getChunk()};
}

/// Checks `conditions` on scores of a shape `[.., T, S]`. The message begins with `name`.
mlir::LogicalResult checkMask(std::optional<mlir::Location> location, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> scores, const MaskConditions &conditions);

/// Checks a sink of scores `[.., H, T, S]`, which may be null.
mlir::LogicalResult checkSink(std::optional<mlir::Location> location, llvm::StringRef name,
                              llvm::ArrayRef<int64_t> scores, mlir::Value sink);

/// The shape `[T, k, N]` of products of `input` with the experts' matrices `weight` that `ids`
/// chooses, as in `expert_matmul`; checks all three. The message begins with `name`.
mlir::FailureOr<llvm::SmallVector<int64_t>> expertShape(std::optional<mlir::Location> location,
                                                        llvm::StringRef name, mlir::Type input,
                                                        mlir::Type weight, mlir::Type ids);

/// Elements of the largest constant: what is larger is a parameter, whose data no text holds.
inline constexpr int64_t maxConstantElements = int64_t{1} << 24;

/// An error unless a constant may have `type`.
mlir::LogicalResult checkConstant(std::optional<mlir::Location> location, mlir::Type type);

/// A tensor type as users read it: "[?, 64] f32".
std::string describe(mlir::Type type);

/// The element type that a product's input is rounded to for such a weight: that of the weight
/// itself, or for blocks the blocks of activations that they take.
mlir::Type roundingFor(mlir::TypedValue<mlir::RankedTensorType> weight);

} // namespace heddle::ir
