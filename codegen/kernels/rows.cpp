// Kernels over rows: embed, positions, select_rows.
#include "codegen/kernels/kernels.h"

#include "codegen/element_types.h"
#include "codegen/kernels/dequantise.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Fills every row of the result of `op`, `[rows, width]` f32, with the row of `table` that
/// `source` names.
void emitRowCopies(KernelBuilder &kernel, Launch &launch, Operation *op, Value table,
                   llvm::function_ref<Value(Value)> source) {
  Emit &e = kernel.emit;
  ArrayRef<Size> sizes = kernel.context.dims.sizes(op->getResult(0));
  Value result = kernel.result();
  forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
    Value from = source(row[0]);
    forLanes(e, e.index(0), kernel.size(sizes[1]), isMultiple(sizes[1], lanes),
             [&](Value column, Value mask) {
               Value x = loadFloats(e, table, {from, column}, mask);
               storeElements(e, x, result, {row[0], column}, mask);
             });
  });
  launch.bytes = launch.bytes + bytesOf(kernel.context, op->getResult(0));
}

struct EmbedKernel : KernelOpInterface::ExternalModel<EmbedKernel, EmbedOp> {
  static void emitFromBlocks(KernelBuilder &kernel, Launch &launch, EmbedOp embed,
                             BlocksType blocks);
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto embed = cast<EmbedOp>(op);
    KernelBuilder kernel(lowering, op, "embed");
    Type element = embed.getTable().getType().getElementType();
    Launch launch;
    // What is read of the table: a row for each id.
    launch.bytes = storedBytes(lowering.context.dims.sizes(embed.getResult()), element) +
                   bytesOf(lowering.context, embed.getIds());
    if (auto blocks = dyn_cast<BlocksType>(element)) {
      emitFromBlocks(kernel, launch, embed, blocks);
      kernel.finish(std::move(launch));
      return success();
    }
    Value table = kernel.operand(0), ids = kernel.operand(1);
    emitRowCopies(kernel, launch, op, table,
                  [&](Value row) { return kernel.emit.toIndex(kernel.emit.load(ids, row)); });
    kernel.finish(std::move(launch));
    return success();
  }
};

void EmbedKernel::emitFromBlocks(KernelBuilder &kernel, Launch &launch, EmbedOp embed,
                                 BlocksType blocks) {
  Emit &e = kernel.emit;
  Value table = kernel.flat({Ref::operand, 0}, blocks), ids = kernel.operand(1);
  Value result = kernel.result();
  int64_t width = embed.getTable().getType().getDimSize(1);
  int64_t rowBytes = blockFormatOf(blocks)->rowBytes(width);
  forTensorRows(kernel, launch, kernel.context.dims.sizes(embed.getResult()),
                [&](ArrayRef<Value> row) {
                  Value start = e.mul(e.toIndex(e.load(ids, row[0])), rowBytes);
                  emitDequantisedRow(e, blocks.getKind(), table, start, width,
                                     [&](Value column, Value values, Value mask) {
                                       storeElements(e, values, result, {row[0], column}, mask);
                                     });
                });
  launch.bytes = launch.bytes + bytesOf(kernel.context, embed.getResult());
}

struct SelectRowsKernel : KernelOpInterface::ExternalModel<SelectRowsKernel, SelectRowsOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "select_rows");
    Value input = kernel.operand(0);
    Value wanted = kernel.flat({Ref::outputRows, 1}, kernel.builder.getI32Type());
    Launch launch;
    launch.bytes = bytesOf(lowering.context, op->getResult(0));
    emitRowCopies(kernel, launch, op, input,
                  [&](Value row) { return kernel.emit.toIndex(kernel.emit.load(wanted, row)); });
    kernel.finish(std::move(launch));
    return success();
  }
};

struct PositionsKernel : KernelOpInterface::ExternalModel<PositionsKernel, PositionsOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "positions");
    Emit &e = kernel.emit;
    Value rows = kernel.flat({Ref::rows, 0}, e.i32()), result = kernel.result();
    const Size &count = lowering.context.dims.sizes(op->getResult(0))[0];
    Launch launch;
    launch.grid = {{count, tileElements}};
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      forRows(e, tile[0], tileElements, kernel.size(count),
              [&](Value row) { e.store(e.load(rows, e.add(e.mul(row, 2), 1)), result, row); });
    });
    launch.bytes = count * constantSize(12);
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachRowKernels(MLIRContext *context) {
  EmbedOp::attachInterface<EmbedKernel>(*context);
  SelectRowsOp::attachInterface<SelectRowsKernel>(*context);
  PositionsOp::attachInterface<PositionsKernel>(*context);
}

} // namespace heddle::codegen
