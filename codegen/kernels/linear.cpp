// Kernels of linear and gated_linear: products with weights in panels.
//
// A panel holds 16 columns of a weight, k after k, so that one contiguous stream feeds the vectors.
// Prefill takes several panels side by side against a few rows: every vector of the weight that was
// loaded serves all of these rows, every element of the input all of these panels. Decode reads the
// weight once for up to eight rows, one panel after the other, as one stream; a weight that fits
// the caches is read several panels at a time, for there the latency of the chains decides.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/inner_product.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/lowering.h"
#include "codegen/plan.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class LinearEmitter {
public:
  LinearEmitter(Products products, Lowering &lowering)
      : products(products), context(lowering.context), decode(context.phase == Phase::decode),
        kernel(lowering, products.op,
               (products.weights == 2 ? "gated_linear_" : "linear_") +
                   phaseName(context.phase).str()),
        e(kernel.emit) {}

  LogicalResult run() {
    FailureOr<RegisterTile> planned = RegisterTile::read(products);
    if (failed(planned))
      return failure();
    registers = *planned;
    bindBuffers();

    ArrayRef<Size> sizes = context.dims.sizes(products.op->getResult(0));
    Size rowCount = sizes[sizes.size() - 2];
    Launch launch;
    // Decode is one stream a thread. Prefill works on what it has read for long, and must not wait
    // for a thread that was held up.
    if (!decode)
      launch.schedule = runtime::Schedule::dynamic;
    for (const Size &size : sizes.drop_back(2))
      launch.grid.push_back({size, 1});
    launch.grid.push_back({constantSize(products.panels()), registers.panels});
    launch.grid.push_back({decode ? constantSize(1) : rowCount, decode ? 1 : productRows});
    Value allRows = kernel.size(rowCount);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      leading.assign(tile.begin(), tile.end() - 2);
      Value first = e.mul(tile.back(), productRows);
      Value last = decode ? allRows : e.min(e.add(first, productRows), allRows);
      emitPanels(e.mul(tile[tile.size() - 2], registers.panels), decode ? e.index(0) : first, last);
    });
    describeCost(launch, sizes);
    launch.scratch = constantSize(product->scratchBytes(registers.panels));
    kernel.finish(std::move(launch));
    return success();
  }

private:
  void bindBuffers() {
    product = makeProduct(products, kernel);
    for (unsigned i = 1 + products.weights; i < products.op->getNumOperands(); ++i)
      extras.push_back(kernel.operand(i));
    result = kernel.result();
  }

  /// All rows of [first, last) against the tile's panels from `panel` on, or the fewer that are
  /// left.
  void emitPanels(Value panel, Value first, Value last) {
    int64_t rest = products.panels() % registers.panels;
    if (rest == 0)
      return emitRows(panel, registers.panels, first, last);
    Value whole = e.index(products.panels() - rest);
    e.when(
        e.less(panel, whole), [&] { emitRows(panel, registers.panels, first, last); },
        [&] { emitRows(panel, rest, first, last); });
  }

  void emitRows(Value panel, int64_t panels, Value first, Value last) {
    product->enterPanels(panel, panels);
    forRowBlocks(e, registers, context.phase, first, last,
                 [&](const RowBlock &block) { emitTile(block, panel, panels); });
  }

  void emitTile(const RowBlock &block, Value panel, int64_t panels) {
    if (!decode)
      prefetchEnds(block.rows, panel, panels);
    SmallVector<Value> sums = product->emit(leading, block.rows, panel, panels);
    block.forEach(e, [&](int64_t i) {
      for (int64_t j = 0; j < panels; ++j) {
        SmallVector<Value> elements;
        for (unsigned w = 0; w < products.weights; ++w)
          elements.push_back(sums[(i * products.weights + w) * panels + j]);
        emitEpilogue(block.rows[i], e.add(panel, j), elements);
      }
    });
  }

  /// What the epilogue reads and writes lies far apart and is in no cache: it is asked for while
  /// the product runs.
  void prefetchEnds(ArrayRef<Value> rows, Value panel, int64_t panels) {
    SmallVector<std::pair<Value, bool>> ends = {{result, true}};
    for (Value extra : extras)
      ends.push_back({extra, false});
    for (auto [memref, write] : ends) {
      ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
      if (shape.size() != leading.size() + 2 || llvm::is_contained(shape, 1))
        continue;
      for (Value row : rows)
        for (int64_t j = 0; j < panels; ++j) {
          SmallVector<Value> at(leading);
          at.append({row, e.mul(e.add(panel, j), lanes)});
          e.prefetch(memref, at, write);
        }
    }
  }

  void emitEpilogue(Value row, Value panel, SmallVector<Value> elements) {
    Value column = e.mul(panel, lanes);
    SmallVector<Value> at(leading);
    at.append({row, column});
    auto store = [&](Value mask) {
      SmallVector<Value> arguments(elements);
      for (Value extra : extras)
        arguments.push_back(loadElements(e, extra, at, mask));
      Value value = applyRegion(e, products.op->getRegion(0), arguments);
      storeElements(e, value, result, at, mask);
    };
    int64_t rest = products.columns() % lanes;
    if (rest == 0)
      return store(nullptr);
    Value width = e.index(products.columns());
    if (products.panels() == 1)
      return store(e.mask(e.index(rest)));
    e.when(
        e.less(width, e.add(column, lanes)), [&] { store(e.mask(e.index(rest))); },
        [&] { store(nullptr); });
  }

  Size operandBytes(unsigned index) {
    Value operand = products.op->getOperand(index);
    return storedBytes(context.dims.sizes(operand),
                       cast<RankedTensorType>(operand.getType()).getElementType());
  }

  void describeCost(Launch &launch, ArrayRef<Size> sizes) {
    Size outputs = elementCount(sizes);
    launch.flops = outputs * constantSize(2 * products.depth() * products.weights);
    launch.bytes = outputs * constantSize(4) +
                   constantSize(products.weights * products.panels() * products.panelBytes()) +
                   operandBytes(0);
    for (unsigned i = 1 + products.weights; i < products.op->getNumOperands(); ++i)
      launch.bytes = launch.bytes + operandBytes(i);
  }

  Products products;
  const PlanContext &context;
  bool decode;
  KernelBuilder kernel;
  Emit &e;
  RegisterTile registers{1, 1};
  std::unique_ptr<InnerProduct> product;
  Value result;
  SmallVector<Value> extras, leading;
};

struct LinearKernel : KernelOpInterface::ExternalModel<LinearKernel, LinearOp> {
  void plan(Operation *op, const PlanContext &context) const {
    chooseTile({op, 1}, context).write(op);
  }
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    return LinearEmitter({op, 1}, lowering).run();
  }
};

struct GatedLinearKernel : KernelOpInterface::ExternalModel<GatedLinearKernel, GatedLinearOp> {
  void plan(Operation *op, const PlanContext &context) const {
    chooseTile({op, 2}, context).write(op);
  }
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    return LinearEmitter({op, 2}, lowering).run();
  }
};

} // namespace

void attachLinearKernels(MLIRContext *context) {
  LinearOp::attachInterface<LinearKernel>(*context);
  GatedLinearOp::attachInterface<GatedLinearKernel>(*context);
}

} // namespace heddle::codegen
