#include "codegen/kernels/block_product.h"

#include "codegen/element_types.h"
#include "runtime/quantized/block_panels.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

using runtime::quadBytes;

BlockProduct::BlockProduct(const Products &products, KernelBuilder &kernel)
    : products(products), kernel(kernel), e(kernel.emit), dot(e, kernel.context.target),
      layout(rowBlocks(products.blocks().rowsFor())),
      input(e, kernel.flat({Ref::operand, 0}, products.blocks())) {
  for (unsigned i = 0; i < products.weights; ++i)
    weights.emplace_back(e, kernel.flat({Ref::panels, products.first + i}, products.blocks()));
}

void BlockProduct::takeWeight(Value panels) {
  weights.clear();
  weights.emplace_back(e, panels);
}

SmallVector<Value> BlockProduct::emit(ArrayRef<RowPlace> rowPlaces, Value panel, int64_t panels) {
  ArrayRef<Size> sizes = kernel.context.dims.sizes(products.op->getOperand(0));
  rowStarts.clear();
  for (const RowPlace &place : rowPlaces) {
    Value row = place.front();
    for (size_t axis = 1; axis < place.size(); ++axis)
      row = e.add(e.mul(row, kernel.size(sizes[axis])), place[axis]);
    rowStarts.push_back(e.mul(row, layout.rowBytes(products.depth())));
  }
  enterColumns(panel, panels);
  return tile();
}

void BlockProduct::enterColumns(Value panel, int64_t panels) {
  columnStarts.clear();
  columnBytes.clear();
  for (Bytes &weight : weights)
    for (int64_t i = 0; i < panels; ++i) {
      columnStarts.push_back(e.mul(e.add(panel, i), products.panelBytes()));
      columnBytes.push_back(&weight);
    }
}

BlockProduct::Sums BlockProduct::integerZeros() {
  return Sums(rows() * columns(), e.filled(e.vec(e.i32()), 0));
}

BlockProduct::Sums BlockProduct::overBlocks(int64_t length, int64_t bytes,
                                            llvm::function_ref<Sums(Value, ValueRange)> block) {
  int64_t count = llvm::divideCeil(products.depth(), length);
  return e.loop(e.index(0), e.index(count), 1, zeros(), [&](Value index, ValueRange sums) {
    enterBlock(index, 0, bytes);
    return block(index, sums);
  });
}

void BlockProduct::enterBlock(Value index, int64_t from, int64_t bytes) {
  rowAt.clear();
  for (Value start : rowStarts)
    rowAt.push_back(e.add(start, e.mul(index, layout.bytes)));
  columnAt.clear();
  for (Value start : columnStarts)
    columnAt.push_back(e.add(e.add(start, e.mul(index, bytes)), from));
}

SmallVector<Value> BlockProduct::quadsAt(Value offset) {
  return ofColumns(
      [&](Bytes &bytes, Value at) { return bytes.load(e.add(at, offset), quadBytes); });
}

void BlockProduct::prefetchAhead(Value offset, int64_t bytes) {
  if (!prefetchesAhead(products, kernel.context.phase, rows()))
    return;
  for (int64_t c = 0; c < columns(); ++c)
    for (int64_t at = 0; at < bytes; at += quadBytes)
      columnBytes[c]->prefetch(e.add(e.add(columnAt[c], offset), prefetchDistance + at));
}

Value BlockProduct::bits(Value quads, int64_t shift, int64_t mask) {
  if (shift != 0) {
    VectorType pairs = e.vec(e.b.getI16Type(), quadBytes / 2);
    Value by = e.filled(pairs, std::abs(shift));
    Value shorts = e.bitcast(quads, pairs);
    shorts = shift > 0 ? arith::ShRUIOp::create(e.b, e.loc, shorts, by).getResult()
                       : arith::ShLIOp::create(e.b, e.loc, shorts, by).getResult();
    quads = e.bitcast(shorts, cast<VectorType>(quads.getType()));
  }
  return arith::AndIOp::create(e.b, e.loc, quads, e.filled(quads.getType(), mask));
}

SmallVector<Value> BlockProduct::bits(ArrayRef<Value> quads, int64_t shift, int64_t mask) {
  return llvm::map_to_vector(quads, [&](Value each) { return bits(each, shift, mask); });
}

BlockProduct::Sums BlockProduct::startFrom(Value offset) {
  Sums sums;
  for (Value row : rowAt)
    sums.append(columns(), input.repeated(e.add(row, offset), e.i32()));
  return sums;
}

void BlockProduct::multiplyQuad(MutableArrayRef<Value> sums, ArrayRef<Value> quads, Value quad) {
  Value offset = e.add(e.mul(quad, 4), layout.values);
  for (int64_t r = 0; r < rows(); ++r) {
    Int8Dot::Left left = dot.left(input.repeated(e.add(rowAt[r], offset), e.i32()));
    for (int64_t c = 0; c < columns(); ++c)
      sums[r * columns() + c] = dot.multiply(sums[r * columns() + c], quads[c], left);
  }
}

Value BlockProduct::toFloat(Value integers) {
  return arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), integers);
}

SmallVector<Value> BlockProduct::rowScales() {
  return llvm::map_to_vector(
      rowAt, [&](Value row) { return input.repeated(e.add(row, layout.scale), e.f32()); });
}

BlockProduct::Sums BlockProduct::scaled(ValueRange carried, const Sums &integers,
                                        ArrayRef<Value> scales) {
  SmallVector<Value> ofRows = rowScales();
  Sums next;
  for (auto [i, sum] : llvm::enumerate(integers)) {
    Value scale = times(scales[i % columns()], ofRows[i / columns()]);
    next.push_back(e.fma(toFloat(sum), scale, carried[i]));
  }
  return next;
}

std::unique_ptr<InnerProduct> makeBlockProduct(const Products &products, KernelBuilder &kernel) {
  switch (products.blocks().getKind()) {
  case BlockKind::Q8_0:
  case BlockKind::Q4_0:
  case BlockKind::Int8:
    return makeSimpleBlockProduct(products, kernel);
  case BlockKind::Q4_K:
  case BlockKind::Q6_K:
    return makeKBlockProduct(products, kernel);
  case BlockKind::Row32:
  case BlockKind::Row256:
    break;
  }
  llvm_unreachable("a weight has a weight's format");
}

} // namespace heddle::codegen
