// Entries of keys and values as the cache stores them, and as vectors of f32. In bf16, where they
// stand in pairs, kernels take them apart themselves.
#pragma once

#include "codegen/emit.h"
#include "runtime/program.h"

namespace heddle::codegen {

/// What one entry is stored as: f32, the bits of a bf16 or f16, or a signed byte.
mlir::Type entryType(Emit &emit, runtime::CacheElement element);

/// The scale at `at`, an index of bytes of one side of a cache in int8, in all lanes.
mlir::Value loadScale(Emit &emit, mlir::Value cache, mlir::Value at);
/// The scales of 16 positions from `at` on.
mlir::Value loadScales(Emit &emit, mlir::Value cache, mlir::Value at);
/// Stores a scale at `at`.
void storeScale(Emit &emit, mlir::Value scale, mlir::Value cache, mlir::Value at);

/// The scale of a row whose largest magnitude has the bits `largest`, an i32: NaN if the row is not
/// finite.
mlir::Value scaleFor(Emit &emit, mlir::Value largest);

/// 16 f32 as entries, rounded to nearest even. `scale` is a vector, and used in int8 alone.
mlir::Value narrowEntries(Emit &emit, runtime::CacheElement element, mlir::Value floats,
                          mlir::Value scale);
/// 16 entries as f32; not of bf16.
mlir::Value widenEntries(Emit &emit, runtime::CacheElement element, mlir::Value entries,
                         mlir::Value scale);

} // namespace heddle::codegen
