// Rotary positions as passes find them: a rotate, or what fuse-rotation made of one.
#pragma once

#include "ir/ops.h"

namespace heddle::passes {

/// Heads that turn by their positions.
class Rotation {
public:
  /// The one that makes `heads`; null where none does.
  static Rotation of(mlir::Value heads);

  explicit operator bool() const { return op != nullptr; }
  mlir::Operation *operation() const { return op; }
  /// The heads before they turn.
  mlir::Value input() const { return op->getOperand(0); }
  ir::PairingAttr pairing() const;
  /// Whether both turn by the same factors.
  bool agreesWith(const Rotation &other) const;
  /// The table of factors. It is made behind what it reads, unless there is one already.
  mlir::Value table() const;

private:
  mlir::Operation *op = nullptr;
};

} // namespace heddle::passes
