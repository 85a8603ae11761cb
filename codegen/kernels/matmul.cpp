// Kernels of matmul with a right side that is computed: it is brought into panels first, then
// multiplied as a weight would be. Any dimension may be dynamic.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/lowering.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class MatmulEmitter {
public:
  MatmulEmitter(MatmulOp op, const PlanContext &context)
      : op(op), context(context), transposed(op.getTransposeRhs()),
        bf16(op.getRhs().getType().getElementType().isBF16()),
        batched(op.getRhs().getType().getRank() > 2) {
    ArrayRef<Size> rhs = context.dims.sizes(op.getRhs());
    depth = rhs[rhs.size() - (transposed ? 1 : 2)];
    columns = rhs[rhs.size() - (transposed ? 2 : 1)];
    for (const Size &size : rhs.drop_back(2))
      batches.push_back(size);
  }

  /// Elements of the panels of one batch, at most: columns and depth are rounded up by a panel and
  /// a pair.
  Size panelElements() const {
    return (columns + constantSize(lanes)) * (depth + constantSize(bf16 ? 1 : 0));
  }
  Size temporaryBytes() const {
    return elementCount(batches) * panelElements() * constantSize(bf16 ? 2 : 4);
  }

  void emitPack(Lowering &lowering) {
    KernelBuilder kernel(lowering, op, "pack_rhs");
    Emit &e = kernel.emit;
    Type element = op.getRhs().getType().getElementType();
    Value source = kernel.operand(1), panels = kernel.flat({Ref::temporary, 0}, element);
    Value allColumns = kernel.size(columns), allDepth = kernel.size(depth);
    Value perPanel = panelSize(e, allDepth);
    Launch launch;
    for (const Size &size : batches)
      launch.grid.push_back({size, 1});
    launch.grid.push_back({columns, lanes});
    int64_t group = bf16 ? 2 : 1;
    Value zero = e.constant(e.b.getZeroAttr(storedType(element)));
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      Value base = e.add(batchBase(kernel, tile.drop_back()), e.mul(tile.back(), perPanel));
      Value first = e.mul(tile.back(), lanes);
      Value padded = e.mul(e.ceilDiv(allDepth, group), group);
      e.loop(e.index(0), padded, 1, [&](Value k) {
        e.loop(e.index(0), e.index(lanes), 1, [&](Value lane) {
          Value column = e.add(first, lane);
          Value inside =
              arith::AndIOp::create(e.b, e.loc, e.less(column, allColumns), e.less(k, allDepth));
          Value at = e.add(base, e.add(e.mul(e.add(e.mul(e.div(k, group), lanes), lane), group),
                                       e.rem(k, group)));
          e.when(
              inside,
              [&] {
                SmallVector<Value> from(tile.drop_back());
                from.append(transposed ? std::initializer_list<Value>{column, k}
                                       : std::initializer_list<Value>{k, column});
                e.store(e.load(source, from), panels, {at});
              },
              [&] { e.store(zero, panels, {at}); });
        });
      });
    });
    launch.bytes =
        elementCount(context.dims.sizes(op.getRhs())) * constantSize(2 * storedBytes(element));
    kernel.finish(std::move(launch));
  }

  void emitProducts(Lowering &lowering) {
    KernelBuilder kernel(lowering, op, "matmul");
    Emit &e = kernel.emit;
    Type element = op.getRhs().getType().getElementType();
    lhs = kernel.operand(0);
    result = kernel.result();
    panels = kernel.flat({Ref::temporary, 0}, element);
    ArrayRef<Size> sizes = context.dims.sizes(op.getResult());
    Size rowCount = sizes[sizes.size() - 2];
    int64_t width = context.target.avx512 ? 4 : 1;
    Launch launch;
    for (const Size &size : sizes.drop_back(2))
      launch.grid.push_back({size, 1});
    launch.grid.push_back({columns, width * lanes});
    launch.grid.push_back({rowCount, productRows});
    Value allRows = kernel.size(rowCount);
    allColumns = kernel.size(columns);
    allDepth = kernel.size(depth);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      leading.assign(tile.begin(), tile.end() - 2);
      base = batchBase(kernel, batched ? ArrayRef<Value>(leading) : ArrayRef<Value>());
      Value first = e.mul(tile.back(), productRows);
      Value last = e.min(e.add(first, productRows), allRows);
      Value panel = e.mul(tile[tile.size() - 2], width);
      Value panelCount = e.ceilDiv(allColumns, lanes);
      Value left = e.sub(panelCount, panel);
      e.when(
          e.less(left, e.index(width)),
          [&] {
            e.loop(panel, panelCount, 1,
                   [&](Value single) { emitRows(e, single, 1, first, last); });
          },
          [&] { emitRows(e, panel, width, first, last); });
    });
    Size outputs = elementCount(sizes);
    launch.flops = outputs * depth * constantSize(2);
    launch.bytes = outputs * constantSize(4) +
                   elementCount(context.dims.sizes(op.getLhs())) * constantSize(bf16 ? 2 : 4) +
                   temporaryBytes();
    bool scores = !asConstant(rowCount) && !asConstant(columns);
    if (scores)
      launch.attention = outputs * constantSize(4);
    kernel.finish(std::move(launch));
  }

private:
  Value panelSize(Emit &e, Value allDepth) {
    return bf16 ? e.mul(e.ceilDiv(allDepth, 2), 2 * lanes) : e.mul(allDepth, lanes);
  }

  Value batchBase(KernelBuilder &kernel, ArrayRef<Value> batch) {
    Emit &e = kernel.emit;
    Value index = e.index(0);
    for (auto [at, size] : llvm::zip(batch, batches))
      index = e.add(e.mul(index, kernel.size(size)), at);
    return e.mul(index, kernel.size(panelElements()));
  }

  void emitRows(Emit &e, Value panel, int64_t width, Value first, Value last) {
    SmallVector<int64_t> blocks = {6, 1};
    for (int64_t block : blocks) {
      Value end = e.add(first, e.mul(e.div(e.sub(last, first), block), block));
      e.loop(first, end, block, [&](Value row) { emitTile(e, row, block, panel, width); });
      first = end;
    }
  }

  SmallVector<Value> placeOf(Value row, Value column) {
    SmallVector<Value> at(leading);
    at.append({row, column});
    return at;
  }

  void emitTile(Emit &e, Value row, int64_t rows, Value panel, int64_t width) {
    ProductTile tile;
    tile.rows = rows;
    tile.columns = width;
    tile.bf16 = bf16;
    Value perPanel = panelSize(e, allDepth);
    SmallVector<Value> panelBases, rowIndices;
    for (int64_t i = 0; i < rows; ++i)
      rowIndices.push_back(e.add(row, i));
    for (int64_t j = 0; j < width; ++j)
      panelBases.push_back(e.add(base, e.mul(e.add(panel, j), perPanel)));
    int64_t perStep = bf16 ? 2 * lanes : lanes;
    tile.left = [&](int64_t i, Value step) {
      return loadLeft(e, lhs, placeOf(rowIndices[i], step), bf16);
    };
    tile.right = [&](int64_t column, Value step) {
      return e.loadVector(panels, {e.add(panelBases[column], e.mul(step, perStep))}, perStep);
    };
    tile.unroll = 2;
    Value steps = bf16 ? e.div(allDepth, 2) : allDepth;
    SmallVector<Value> sums = emitProduct(e, context.target, tile, steps);
    if (bf16)
      sums = emitOddStep(e, tile, rowIndices, steps, sums);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < width; ++j)
        store(e, sums[i * width + j], rowIndices[i], e.mul(e.add(panel, j), lanes));
  }

  /// The last k where their number is odd: its partner in the panel is 0, in the row it is not
  /// read.
  SmallVector<Value> emitOddStep(Emit &e, ProductTile tile, ArrayRef<Value> rows, Value steps,
                                 ValueRange sums) {
    auto right = tile.right;
    tile.unroll = 1;
    tile.left = [&, steps](int64_t i, Value) {
      return Value(arith::ExtUIOp::create(e.b, e.loc, e.i32(),
                                          e.load(lhs, placeOf(rows[i], e.mul(steps, 2)))));
    };
    tile.right = [&, steps](int64_t column, Value) { return right(column, steps); };
    return emitProduct(e, context.target, tile, e.rem(allDepth, 2), sums);
  }

  void store(Emit &e, Value sum, Value row, Value column) {
    SmallVector<Value> at = placeOf(row, column);
    e.when(
        e.less(allColumns, e.add(column, lanes)),
        [&] { storeElements(e, sum, result, at, e.mask(e.sub(allColumns, column))); },
        [&] { storeElements(e, sum, result, at, nullptr); });
  }

  MatmulOp op;
  const PlanContext &context;
  bool transposed, bf16, batched;
  Size depth, columns;
  SmallVector<Size> batches;
  Value lhs, result, panels, allColumns, allDepth, base;
  SmallVector<Value> leading;
};

struct MatmulKernel : KernelOpInterface::ExternalModel<MatmulKernel, MatmulOp> {
  SmallVector<Size> temporaries(Operation *op, const PlanContext &context) const {
    return {MatmulEmitter(cast<MatmulOp>(op), context).temporaryBytes()};
  }
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    MatmulEmitter emitter(cast<MatmulOp>(op), lowering.context);
    emitter.emitPack(lowering);
    emitter.emitProducts(lowering);
    return success();
  }
};

} // namespace

void attachMatmulKernels(MLIRContext *context) {
  MatmulOp::attachInterface<MatmulKernel>(*context);
}

} // namespace heddle::codegen
