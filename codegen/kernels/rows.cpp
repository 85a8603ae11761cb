// Kernels over rows: embed, positions, select_rows.
#include "codegen/kernels/kernels.h"

#include "codegen/element_types.h"
#include "codegen/kernels/dequantise.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "codegen/plan.h"
#include "ir/ops.h"

#include <limits>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Fills row `row` of `result` with 16 values from each column on, as `values` gives them.
void fillRow(KernelBuilder &kernel, const Size &width, Value result, Value row,
             llvm::function_ref<Value(Value column, Value mask)> values) {
  Emit &e = kernel.emit;
  forLanes(e, e.index(0), kernel.size(width), isMultiple(width, lanes),
           [&](Value column, Value mask) {
             storeElements(e, values(column, mask), result, {row, column}, mask);
           });
}

void copyRow(KernelBuilder &kernel, const Size &width, Value table, Value from, Value result,
             Value row) {
  fillRow(kernel, width, result, row, [&](Value column, Value mask) {
    return loadFloats(kernel.emit, table, {from, column}, mask);
  });
}

/// What a plan says of a table that a product of the model reads too: there is one copy of it, in
/// panels.
constexpr StringLiteral panelsName = "panels";

/// Whether operand `operand` is the weight of a product that reads it transposed, in panels.
bool isPackedRows(OpOperand &operand) {
  Operation *op = operand.getOwner();
  unsigned weights = isa<GatedLinearOp>(op)    ? 2
                     : isa<ProjectHeadsOp>(op) ? 3
                     : isa<LinearOp>(op)       ? 1
                                               : 0;
  unsigned number = operand.getOperandNumber();
  return number >= 1 && number <= weights && isTransposed(op, number);
}

/// Whether the panels of `embed`'s table are there anyway.
bool isMultipliedToo(EmbedOp embed) {
  auto weight = embed.getTable().getDefiningOp<WeightOp>();
  if (!weight)
    return false;
  return llvm::any_of(embed->getBlock()->getOps<WeightOp>(), [&](WeightOp other) {
    return other.getParamAttr() == weight.getParamAttr() && other.getType() == weight.getType() &&
           llvm::any_of(other->getUses(), isPackedRows);
  });
}

struct EmbedKernel : KernelOpInterface::ExternalModel<EmbedKernel, EmbedOp> {
  void plan(Operation *op, const PlanContext &) const {
    Builder builder(op->getContext());
    if (isMultipliedToo(cast<EmbedOp>(op)))
      op->setAttr(kernelAttrName, builder.getDictionaryAttr(
                                      builder.getNamedAttr(panelsName, builder.getUnitAttr())));
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto embed = cast<EmbedOp>(op);
    KernelBuilder kernel(lowering, op, "embed");
    Emit &e = kernel.emit;
    RankedTensorType type = embed.getTable().getType();
    auto blocks = dyn_cast<BlocksType>(type.getElementType());
    const bool isPacked = op->hasAttr(kernelAttrName);
    Value table = isPacked ? kernel.flat({Ref::panels, 0}, type.getElementType())
                  : blocks ? kernel.flat({Ref::operand, 0}, blocks)
                           : kernel.operand(0);
    Value ids = kernel.operand(1), result = kernel.result();
    ArrayRef<Size> sizes = kernel.context.dims.sizes(embed.getResult());
    Launch launch;
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      Value id = e.toIndex(e.load(ids, row[0]));
      // Ids may be computed, so that nobody has checked them. A negative one is a large unsigned.
      Value inside = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult, id,
                                           e.index(type.getDimSize(0)));
      auto lookUp = [&] {
        if (isPacked)
          emitPanelRow(e, type, table, id, [&](Value column, Value values, Value mask) {
            storeElements(e, values, result, {row[0], column}, mask);
          });
        else if (blocks)
          dequantiseRow(e, embed, table, id, result, row[0]);
        else
          copyRow(kernel, sizes[1], table, id, result, row[0]);
      };
      e.when(inside, lookUp, [&] {
        Value nan = e.splat(std::numeric_limits<double>::quiet_NaN());
        fillRow(kernel, sizes[1], result, row[0], [&](Value, Value) { return nan; });
      });
    });
    // What is read of the table: a row for each id.
    launch.bytes = storedBytes(sizes, type.getElementType()) +
                   bytesOf(kernel.context, embed.getIds()) +
                   bytesOf(kernel.context, embed.getResult());
    kernel.finish(std::move(launch));
    return success();
  }

  static void dequantiseRow(Emit &e, EmbedOp embed, Value table, Value id, Value result,
                            Value row) {
    auto blocks = cast<BlocksType>(embed.getTable().getType().getElementType());
    int64_t width = embed.getTable().getType().getDimSize(1);
    Value start = e.mul(id, blockFormatOf(blocks)->rowBytes(width));
    emitDequantisedRow(e, blocks.getKind(), table, start, width,
                       [&](Value column, Value values, Value mask) {
                         storeElements(e, values, result, {row, column}, mask);
                       });
  }
};

struct SelectRowsKernel : KernelOpInterface::ExternalModel<SelectRowsKernel, SelectRowsOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    KernelBuilder kernel(lowering, op, "select_rows");
    Emit &e = kernel.emit;
    Value input = kernel.operand(0), wanted = kernel.flat({Ref::outputRows, 1}, e.i32());
    Value result = kernel.result();
    ArrayRef<Size> sizes = kernel.context.dims.sizes(op->getResult(0));
    Launch launch;
    forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) {
      copyRow(kernel, sizes[1], input, e.toIndex(e.load(wanted, row[0])), result, row[0]);
    });
    launch.bytes = bytesOf(kernel.context, op->getResult(0)) * constantSize(2);
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
