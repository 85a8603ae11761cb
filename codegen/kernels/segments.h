// Segments of keys: documents packed into one sequence.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// The first key of segment `wanted` among the keys [low, high), and the one after the last; the
/// largest i32 and 0 where there is none. `segments` holds the numbers, that of key 0 at `base`.
std::pair<mlir::Value, mlir::Value> emitFindSegment(Emit &emit, mlir::Value segments,
                                                    mlir::Value base, mlir::Value low,
                                                    mlir::Value high, mlir::Value wanted);

} // namespace heddle::codegen
