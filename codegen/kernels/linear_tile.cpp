// Tiles of products with weights in panels, and of what follows them.
#include "codegen/kernels/linear_tile.h"

#include "codegen/kernels/region.h"

#include <limits>

using namespace mlir;

namespace heddle::codegen {

LinearTile::LinearTile(const Products &products, const RegisterTile &registers, unsigned firstExtra,
                       KernelBuilder &kernel)
    : products(products), registers(registers), phase(kernel.context.phase), e(kernel.emit),
      product(makeProduct(products, kernel)) {
  for (unsigned i = firstExtra; i < products.op->getNumOperands(); ++i)
    extras.push_back(kernel.operand(i));
  result = kernel.result();
}

void LinearTile::withPanels(Value panel, llvm::function_ref<void(int64_t)> body) {
  int64_t rest = products.panels() % registers.panels;
  if (rest == 0)
    return body(registers.panels);
  Value whole = e.index(products.panels() - rest);
  e.when(e.less(panel, whole), [&] { body(registers.panels); }, [&] { body(rest); });
}

void LinearTile::emit(Value panel, Value weightStart, Value first, Value last, PlaceOf placeOf) {
  withPanels(panel,
             [&](int64_t panels) { emitRows(panel, panels, weightStart, first, last, placeOf); });
}

void LinearTile::emitRows(Value panel, int64_t panels, Value weightStart, Value first, Value last,
                          PlaceOf placeOf) {
  Value inWeight = e.add(weightStart, panel);
  product->enterPanels(inWeight, panels);
  forRowBlocks(e, registers, phase, first, last, [&](const RowBlock &block) {
    SmallVector<RowPlace> inputs, results;
    for (Value row : block.rows) {
      Place place = placeOf(row);
      inputs.push_back(place.input);
      results.push_back(place.result);
    }
    if (phase == Phase::prefill)
      prefetchEnds(results, panel, panels);
    SmallVector<Value> sums = product->emit(inputs, inWeight, panels);
    block.forEach(e, [&](int64_t i) {
      for (int64_t j = 0; j < panels; ++j) {
        SmallVector<Value> elements;
        for (unsigned w = 0; w < products.weights; ++w)
          elements.push_back(sums[(i * products.weights + w) * panels + j]);
        emitEpilogue(results[i], e.add(panel, j), elements);
      }
    });
  });
}

void LinearTile::emitNaN(Value panel, const RowPlace &place) {
  SmallVector<Value> sums(products.weights, e.splat(std::numeric_limits<double>::quiet_NaN()));
  withPanels(panel, [&](int64_t panels) {
    for (int64_t j = 0; j < panels; ++j)
      emitEpilogue(place, e.add(panel, j), sums);
  });
}

/// What the epilogue reads and writes lies far apart and is in no cache: it is asked for while the
/// product runs.
void LinearTile::prefetchEnds(ArrayRef<RowPlace> places, Value panel, int64_t panels) {
  SmallVector<std::pair<Value, bool>> ends = {{result, true}};
  for (Value extra : extras)
    ends.push_back({extra, false});
  for (auto [memref, write] : ends) {
    ArrayRef<int64_t> shape = cast<MemRefType>(memref.getType()).getShape();
    if (shape.size() != places.front().size() + 1 || llvm::is_contained(shape, 1))
      continue;
    for (const RowPlace &place : places)
      for (int64_t j = 0; j < panels; ++j) {
        RowPlace at = place;
        at.push_back(e.mul(e.add(panel, j), lanes));
        e.prefetch(memref, at, write);
      }
  }
}

void LinearTile::emitEpilogue(const RowPlace &place, Value panel, ArrayRef<Value> sums) {
  Value column = e.mul(panel, lanes);
  RowPlace at = place;
  at.push_back(column);
  auto store = [&](Value mask) {
    SmallVector<Value> arguments(sums);
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

} // namespace heddle::codegen
