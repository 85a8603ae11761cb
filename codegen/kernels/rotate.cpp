// Kernels of rotate. Sines and cosines of a token are computed once, into the worker's scratch, for
// all heads.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/functions.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <cmath>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Angles that are computed at once: a register of f64 where they are 512 bits wide.
constexpr int64_t angleLanes = 8;

struct RotateEmitter {
  RotateOp op;
  KernelBuilder &kernel;
  Emit &e;
  Value input = {}, positions = {}, frequencies = {}, result = {};
  int64_t width = 0; ///< of a head
  int64_t dims = 0;  ///< entries of it that turn

  Value mul(Value a, Value b) { return arith::MulFOp::create(e.b, e.loc, a, b); }

  bool interleaved() { return op.getPairing() == Pairing::Interleaved; }
  int64_t pairs() const { return dims / 2; }
  int64_t groups() const { return llvm::divideCeil(pairs(), angleLanes); }
  /// Entries of each of the two tables: padded to whole vectors, and by one more for loads that
  /// begin at any pair.
  int64_t tableSize() { return (interleaved() ? 2 : 1) * groups() * angleLanes + lanes; }
  int64_t scratchBytes() { return 2 * tableSize() * 4; }

  /// base^(-2i / dims), or what is given instead, for a group of pairs; 0 beyond the last.
  Value frequenciesOf(int64_t group) {
    int64_t first = group * angleLanes, count = std::min(angleLanes, pairs() - first);
    VectorType type = e.vec(e.b.getF64Type(), angleLanes);
    if (frequencies && count == angleLanes)
      return e.loadVector(frequencies, e.index(first), angleLanes);
    if (frequencies)
      return e.loadMasked(frequencies, e.index(first), e.mask(e.index(count), angleLanes),
                          angleLanes);
    SmallVector<double> values(angleLanes);
    for (int64_t i = 0; i < count; ++i)
      values[i] =
          std::pow(op.getBase()->convertToDouble(), -2.0 * double(first + i) / double(dims));
    return arith::ConstantOp::create(e.b, e.loc,
                                     DenseElementsAttr::get(type, ArrayRef<double>(values)));
  }

  /// Fills the tables for the position of `row`: cosines and sines by pair, or, interleaved, by
  /// entry, the first sine of a pair being negative.
  void fillTables(Value row, Value cosines, Value sines) {
    Value position = arith::SIToFPOp::create(e.b, e.loc, e.b.getF64Type(), e.load(positions, row));
    Value everywhere = e.broadcast(position, angleLanes);
    double magnitude = op.getMagnitude().convertToDouble();
    for (int64_t group = 0; group < groups(); ++group) {
      auto [sin, cos] = emitSinCos(e, mul(everywhere, frequenciesOf(group)));
      if (magnitude != 1) {
        Value factor = e.splat(magnitude, angleLanes);
        sin = mul(sin, factor);
        cos = mul(cos, factor);
      }
      int64_t to = group * angleLanes;
      if (interleaved()) {
        Value negative = arith::NegFOp::create(e.b, e.loc, sin);
        e.storeVector(mix(cos, cos), cosines, e.index(2 * to));
        e.storeVector(mix(negative, sin), sines, e.index(2 * to));
      } else {
        e.storeVector(cos, cosines, e.index(to));
        e.storeVector(sin, sines, e.index(to));
      }
    }
  }

  /// a0 b0 a1 b1 ...
  Value mix(Value a, Value b) {
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < angleLanes; ++i)
      order.append({i, angleLanes + i});
    return vector::ShuffleOp::create(e.b, e.loc, a, b, order);
  }

  Value load(ArrayRef<Value> row, Value column, Value mask) {
    return loadElements(e, input, {row[0], row[1], column}, mask);
  }
  void store(Value value, ArrayRef<Value> row, Value column, Value mask) {
    storeElements(e, value, result, {row[0], row[1], column}, mask);
  }

  /// One head of one token. Products are rounded before they are added, so that both pairings give
  /// the same bits.
  void turn(ArrayRef<Value> row, Value cosines, Value sines) {
    auto add = [&](Value a, Value b) -> Value { return arith::AddFOp::create(e.b, e.loc, a, b); };
    if (interleaved()) {
      SmallVector<int64_t> swap;
      for (int64_t i = 0; i < lanes; ++i)
        swap.push_back(i ^ 1);
      forLanes(e, e.index(dims), [&](Value column, Value mask) {
        Value x = load(row, column, mask);
        Value other = vector::ShuffleOp::create(e.b, e.loc, x, x, swap);
        Value cos = e.loadVector(cosines, column), sin = e.loadVector(sines, column);
        store(add(mul(x, cos), mul(other, sin)), row, column, mask);
      });
    } else {
      forLanes(e, e.index(pairs()), [&](Value column, Value mask) {
        Value second = e.add(column, pairs());
        Value x = load(row, column, mask), y = load(row, second, mask);
        Value cos = e.loadVector(cosines, column), sin = e.loadVector(sines, column);
        Value negative = arith::NegFOp::create(e.b, e.loc, sin);
        store(add(mul(x, cos), mul(y, negative)), row, column, mask);
        store(add(mul(y, cos), mul(x, sin)), row, second, mask);
      });
    }
    forLanes(e, e.index(dims), e.index(width), false,
             [&](Value column, Value mask) { store(load(row, column, mask), row, column, mask); });
  }
};

struct RotateKernel : KernelOpInterface::ExternalModel<RotateKernel, RotateOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto rotate = cast<RotateOp>(op);
    ArrayRef<Size> sizes = lowering.context.dims.sizes(rotate.getResult());
    std::optional<int64_t> width = asConstant(sizes[2]);
    if (!width)
      return op->emitOpError("has no kernel for heads of a width that is not static");
    KernelBuilder kernel(lowering, op, "rotate");
    RotateEmitter emitter{rotate, kernel, kernel.emit};
    emitter.width = *width;
    emitter.dims = rotate.getDims().value_or(*width);
    emitter.input = kernel.operand(0);
    emitter.positions = kernel.operand(1);
    if (rotate.getFrequencies())
      emitter.frequencies = kernel.operand(2);
    emitter.result = kernel.result();

    Emit &e = kernel.emit;
    Size table[] = {constantSize(emitter.tableSize())};
    Value cosines = kernel.scratchWindow(table, e.f32(), e.index(0));
    Value sines = kernel.scratchWindow(table, e.f32(), e.index(emitter.tableSize() * 4));
    Launch launch;
    int64_t rows = rowsPerTile(sizes[0] * sizes[2]);
    launch.grid = {{sizes[1], rows}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      forRows(e, tile[0], rows, kernel.size(sizes[1]), [&](Value row) {
        emitter.fillTables(row, cosines, sines);
        e.loop(e.index(0), kernel.size(sizes[0]), 1,
               [&](Value head) { emitter.turn({head, row}, cosines, sines); });
      });
    });
    launch.scratch = constantSize(emitter.scratchBytes());
    launch.flops =
        elementCount(sizes) * constantSize(3) + sizes[1] * constantSize(emitter.pairs() * 40);
    launch.bytes = bytesOf(lowering.context, rotate.getResult()) * constantSize(2) +
                   bytesOf(lowering.context, rotate.getPositions());
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachRotateKernels(MLIRContext *context) {
  RotateOp::attachInterface<RotateKernel>(*context);
}

} // namespace heddle::codegen
