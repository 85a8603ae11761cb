// Squares of 16 by 16, in registers: four rounds, each of which exchanges the off-diagonal quarters
// of squares half as large as the round before.
#include "codegen/kernels/transpose.h"

using namespace mlir;

namespace heddle::codegen {

void emitTranspose(Emit &e, MutableArrayRef<Value> rows) {
  assert(rows.size() == lanes && "a square");
  for (int64_t half = lanes / 2; half > 0; half /= 2) {
    SmallVector<int64_t> upper, lower;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      bool right = lane & half;
      upper.push_back(right ? lanes + lane - half : lane);
      lower.push_back(right ? lanes + lane : lane + half);
    }
    for (int64_t i = 0; i < lanes; ++i) {
      if (i & half)
        continue;
      Value a = rows[i], b = rows[i + half];
      rows[i] = vector::ShuffleOp::create(e.b, e.loc, a, b, upper);
      rows[i + half] = vector::ShuffleOp::create(e.b, e.loc, a, b, lower);
    }
  }
}

} // namespace heddle::codegen
