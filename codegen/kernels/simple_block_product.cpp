// Products with Q8_0, Q4_0 and int8: one scale for a block, or for a whole column.
#include "codegen/kernels/block_product.h"
#include "runtime/quantized/block_panels.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

using runtime::quadBytes;

/// Blocks of 32 with one scale, which stands first.
class ScaledBlocks : public BlockProduct {
public:
  ScaledBlocks(const Products &products, KernelBuilder &kernel, int64_t panelBlock)
      : BlockProduct(products, kernel), panelBlock(panelBlock) {}

private:
  /// The integer sums of the block at hand.
  virtual Sums integers() = 0;

  Sums tile() override {
    return overBlocks(layout.length, panelBlock, [&](Value, ValueRange carried) {
      prefetchAhead(e.index(0), panelBlock);
      auto scales = ofColumns([&](Bytes &from, Value at) { return from.halves(at); });
      return scaled(carried, integers(), scales);
    });
  }

  int64_t panelBlock;
};
static_assert(runtime::q8_0Panel::scales == 0 && runtime::q4_0Panel::scales == 0);

class Q8Product : public ScaledBlocks {
public:
  Q8Product(const Products &products, KernelBuilder &kernel)
      : ScaledBlocks(products, kernel, runtime::q8_0Panel::bytes) {}

private:
  Sums integers() override {
    Sums sums = startFrom(e.index(layout.sum));
    for (int64_t quad = 0; quad < 8; ++quad)
      multiplyQuad(sums, quadsAt(e.index(runtime::q8_0Panel::quads + quad * quadBytes)),
                   e.index(quad));
    return sums;
  }
};

class Q4Product : public ScaledBlocks {
public:
  Q4Product(const Products &products, KernelBuilder &kernel)
      : ScaledBlocks(products, kernel, runtime::q4_0Panel::bytes) {}

private:
  Sums integers() override {
    // -8 times the row's sum, of -128 times.
    Value four = e.filled(e.vec(e.i32()), 4);
    Sums sums = llvm::map_to_vector(startFrom(e.index(layout.sum)), [&](Value sum) -> Value {
      return arith::ShRSIOp::create(e.b, e.loc, sum, four);
    });
    for (int64_t quad = 0; quad < 4; ++quad) {
      auto packed = quadsAt(e.index(runtime::q4_0Panel::quads + quad * quadBytes));
      multiplyQuad(sums, bits(packed, 0, 15), e.index(quad));
      multiplyQuad(sums, bits(packed, 4, 15), e.index(quad + 4));
    }
    return sums;
  }
};

/// One integer sum for each block of the row; the columns' scales come at the end.
class Int8Product : public BlockProduct {
public:
  using BlockProduct::BlockProduct;

private:
  Sums tile() override {
    using namespace runtime::int8Panel;
    int64_t whole = products.depth() / layout.length;
    int64_t rest = llvm::divideCeil(products.depth() % layout.length, padding);
    Sums sums = zeros();
    if (whole > 0)
      sums = e.loop(e.index(0), e.index(whole), 1, sums, [&](Value index, ValueRange carried) {
        return block(index, layout.length / padding, carried);
      });
    if (rest > 0)
      sums = block(e.index(whole), rest, sums);
    columnAt = columnStarts;
    auto scale = ofColumns([&](Bytes &from, Value at) { return from.floats(e.add(at, scales)); });
    for (auto [i, sum] : llvm::enumerate(sums))
      sum = times(sum, scale[i % columns()]);
    return sums;
  }

  Sums block(Value index, int64_t groups, ValueRange carried) {
    using namespace runtime::int8Panel;
    enterBlock(index, quads, layout.length / 4 * quadBytes);
    Sums start = startFrom(e.index(layout.sum));
    Sums integers =
        e.loop(e.index(0), e.index(groups), 1, start, [&](Value group, ValueRange before) {
          Sums sums(before);
          prefetchAhead(e.mul(group, 8 * quadBytes), 8 * quadBytes);
          for (int64_t i = 0; i < 8; ++i) {
            Value quad = e.add(e.mul(group, 8), i);
            multiplyQuad(sums, quadsAt(e.mul(quad, quadBytes)), quad);
          }
          return sums;
        });
    SmallVector<Value> ofRows = rowScales();
    Sums next;
    for (auto [i, sum] : llvm::enumerate(integers))
      next.push_back(e.fma(toFloat(sum), ofRows[i / columns()], carried[i]));
    return next;
  }
};

} // namespace

std::unique_ptr<InnerProduct> makeSimpleBlockProduct(const Products &products,
                                                     KernelBuilder &kernel) {
  switch (products.blocks().getKind()) {
  case BlockKind::Q8_0:
    return std::make_unique<Q8Product>(products, kernel);
  case BlockKind::Q4_0:
    return std::make_unique<Q4Product>(products, kernel);
  default:
    return std::make_unique<Int8Product>(products, kernel);
  }
}

} // namespace heddle::codegen
