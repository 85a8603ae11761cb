// Kernels of rotate, rotary_table and turn. Rotate computes the factors of a token once, into the
// worker's scratch, for all heads.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/rotary.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Modelled operations for the factors of a pair.
constexpr int64_t flopsOfPair = 40;

/// The factors that `op`, a rotate or a rotary_table, asks for.
template <class Op>
RotaryFactors factorsOf(Op op, KernelBuilder &kernel, unsigned frequencies, int64_t dims) {
  return {.e = kernel.emit,
          .pairing = op.getPairing(),
          .dims = dims,
          .base = op.getBase() ? op.getBase()->convertToDouble() : 0,
          .frequencies = op.getFrequencies() ? kernel.operand(frequencies) : Value(),
          .magnitude = op.getMagnitude().convertToDouble()};
}

/// Turns all heads of all tokens of `op`, whose operand 0 they are. `before` runs for every token;
/// `turn` has an index of its table for it where `byRow`.
void lowerTurn(Operation *op, KernelBuilder &kernel, RotaryTurn turn, bool byRow, Launch launch,
               llvm::function_ref<void(Value row)> before) {
  Emit &e = kernel.emit;
  const PlanContext &context = kernel.context;
  ArrayRef<Size> sizes = context.dims.sizes(op->getResult(0));
  Value input = kernel.operand(0), result = kernel.result();
  int64_t rows = rowsPerTile(sizes[0] * sizes[2]);
  launch.grid = {{sizes[1], rows}};
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    forRows(e, tile[0], rows, kernel.size(sizes[1]), [&](Value row) {
      before(row);
      if (byRow)
        turn.at = {row};
      e.loop(e.index(0), kernel.size(sizes[0]), 1,
             [&](Value head) { turn.emit(input, {head, row}, result, {head, row}); });
    });
  });
  launch.flops = launch.flops + elementCount(sizes) * constantSize(3);
  launch.bytes =
      bytesOf(context, op->getResult(0)) * constantSize(2) + bytesOf(context, op->getOperand(1));
  kernel.finish(std::move(launch));
}

/// The width of the heads of `op`, a static one.
FailureOr<int64_t> headWidth(Operation *op, const PlanContext &context) {
  std::optional<int64_t> width = asConstant(context.dims.sizes(op->getResult(0))[2]);
  if (!width)
    return op->emitOpError("has no kernel for heads of a width that is not static");
  return *width;
}

struct RotateKernel : KernelOpInterface::ExternalModel<RotateKernel, RotateOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto rotate = cast<RotateOp>(op);
    FailureOr<int64_t> width = headWidth(op, lowering.context);
    if (failed(width))
      return failure();
    KernelBuilder kernel(lowering, op, "rotate");
    Emit &e = kernel.emit;
    int64_t dims = rotate.getDims().value_or(*width);
    RotaryFactors factors = factorsOf(rotate, kernel, 2, dims);
    Value positions = kernel.operand(1);
    Value scratch =
        kernel.scratchWindow({constantSize(2), constantSize(dims)}, e.f32(), e.index(0));
    Launch launch;
    launch.scratch = constantSize(2 * dims * 4);
    launch.flops =
        lowering.context.dims.sizes(op->getResult(0))[1] * constantSize(dims / 2 * flopsOfPair);
    lowerTurn(op, kernel, {e, rotate.getPairing(), dims, *width, scratch, {}}, false, launch,
              [&](Value row) { factors.fill(e.load(positions, row), scratch, {}); });
    return success();
  }
};

struct TurnKernel : KernelOpInterface::ExternalModel<TurnKernel, TurnOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto turn = cast<TurnOp>(op);
    FailureOr<int64_t> width = headWidth(op, lowering.context);
    if (failed(width))
      return failure();
    KernelBuilder kernel(lowering, op, "turn");
    RotaryTurn emitter{kernel.emit, turn.getPairing(), turn.getTable().getType().getDimSize(2),
                       *width,      kernel.operand(1), {}};
    lowerTurn(op, kernel, emitter, true, {}, [](Value) {});
    return success();
  }
};

struct RotaryTableKernel : KernelOpInterface::ExternalModel<RotaryTableKernel, RotaryTableOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto table = cast<RotaryTableOp>(op);
    const PlanContext &context = lowering.context;
    KernelBuilder kernel(lowering, op, "rotary_table");
    Emit &e = kernel.emit;
    int64_t dims = table.getType().getDimSize(2);
    RotaryFactors factors = factorsOf(table, kernel, 1, dims);
    Value positions = kernel.operand(0), result = kernel.result();
    Size tokens = context.dims.sizes(table.getResult())[0];
    int64_t rows = rowsPerTile(constantSize(dims * flopsOfPair));
    Launch launch;
    launch.grid = {{tokens, rows}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      forRows(e, tile[0], rows, kernel.size(tokens),
              [&](Value row) { factors.fill(e.load(positions, row), result, {row}); });
    });
    launch.flops = tokens * constantSize(dims / 2 * flopsOfPair);
    launch.bytes = bytesOf(context, table.getResult()) + bytesOf(context, table.getPositions());
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachRotateKernels(MLIRContext *context) {
  RotateOp::attachInterface<RotateKernel>(*context);
  TurnOp::attachInterface<TurnKernel>(*context);
  RotaryTableOp::attachInterface<RotaryTableKernel>(*context);
}

} // namespace heddle::codegen
