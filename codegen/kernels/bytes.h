// Values of other types out of memory that is seen as bytes.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Reads parts of quantised blocks: `at` is an index of bytes.
class Bytes {
public:
  Bytes(Emit &emit, mlir::Value memref) : e(emit), memref(memref) {}

  /// `count` bytes.
  mlir::Value load(mlir::Value at, int64_t count) { return e.loadVector(memref, at, count); }
  /// One element of `type`.
  mlir::Value scalar(mlir::Value at, mlir::Type type) {
    mlir::Value bytes = load(at, type.getIntOrFloatBitWidth() / 8);
    return mlir::vector::ExtractOp::create(e.b, e.loc, e.bitcast(bytes, e.vec(type, 1)), 0);
  }
  /// One element of `type` in all lanes.
  mlir::Value repeated(mlir::Value at, mlir::Type type) { return e.broadcast(scalar(at, type)); }
  /// 16 f16, as f32.
  mlir::Value halves(mlir::Value at) {
    return wideFloats(e.bitcast(load(at, 2 * lanes), e.vec(e.b.getF16Type())));
  }
  /// 16 f32.
  mlir::Value floats(mlir::Value at) { return e.bitcast(load(at, 4 * lanes), e.vec(e.f32())); }
  /// 16 signed, or unsigned, bytes as f32.
  mlir::Value signedBytes(mlir::Value at) {
    mlir::Value wide = mlir::arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), load(at, lanes));
    return mlir::arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), wide);
  }
  mlir::Value unsignedBytes(mlir::Value at) {
    mlir::Value wide = mlir::arith::ExtUIOp::create(e.b, e.loc, e.vec(e.i32()), load(at, lanes));
    return mlir::arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), wide);
  }

  /// Asks for the line at `at`, which may lie beyond the end, to be in the second-level cache.
  void prefetch(mlir::Value at) { e.prefetch(memref, at, /*write=*/false, Emit::Near::second); }

private:
  mlir::Value wideFloats(mlir::Value vector) {
    return mlir::arith::ExtFOp::create(e.b, e.loc, e.vec(e.f32()), vector);
  }

  Emit &e;
  mlir::Value memref;
};

} // namespace heddle::codegen
