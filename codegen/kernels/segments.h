// Segments of keys: documents packed into one sequence.
#pragma once

#include "codegen/emit.h"

namespace heddle::codegen {

/// Keys of one segment: the first, the one after the last, and how many they are.
struct SegmentKeys {
  mlir::Value first, last, count;
};

/// The keys of segment `wanted` among the keys [low, high); where there are none `first` is the
/// largest i32 and `last` is 0. `segments` holds the numbers, that of key 0 at `base`.
SegmentKeys emitFindSegment(Emit &emit, mlir::Value segments, mlir::Value base, mlir::Value low,
                            mlir::Value high, mlir::Value wanted);

} // namespace heddle::codegen
