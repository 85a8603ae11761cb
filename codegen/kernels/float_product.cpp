// Sums of products with weights in f32, or in bf16 with an input in bf16.
#include "codegen/kernels/inner_product.h"
#include "codegen/kernels/product.h"

using namespace mlir;

namespace heddle::codegen {

namespace {

class FloatProduct : public InnerProduct {
public:
  FloatProduct(const Products &products, KernelBuilder &kernel)
      : products(products), kernel(kernel), phase(kernel.context.phase),
        target(kernel.context.target), e(kernel.emit), input(kernel.operand(0)) {
    Type element = products.weight().getElementType();
    for (unsigned i = 0; i < products.weights; ++i)
      weights.push_back(windowOf(kernel.flat({Ref::panels, products.first + i}, element)));
  }

  void takeWeight(Value panels) override { weights.assign(1, windowOf(panels)); }

  SmallVector<Value> emit(ArrayRef<RowPlace> rows, Value panel, int64_t panels) override {
    if (phase == Phase::decode || target.avx512)
      return sum(rows, panel, panels, weights);
    // Few registers hold the sums of few rows. One weight after the other serves twice as many as
    // both at once; the first one's sums wait in memory meanwhile.
    SmallVector<SmallVector<Value>> parts;
    for (Value weight : weights)
      parts.push_back(sum(rows, panel, panels, weight));
    SmallVector<Value> sums;
    for (size_t i = 0; i < rows.size(); ++i)
      for (ArrayRef<Value> part : parts)
        llvm::append_range(sums, part.slice(i * panels, panels));
    return sums;
  }

private:
  /// The sums of `some` of the weights.
  SmallVector<Value> sum(ArrayRef<RowPlace> rows, Value panel, int64_t panels,
                         ArrayRef<Value> some) {
    auto placeOf = [&](int64_t i, Value last) {
      RowPlace at = rows[i];
      at.push_back(last);
      return at;
    };
    ProductTile tile;
    tile.rows = rows.size();
    tile.columns = panels * int64_t(some.size());
    tile.bf16 = products.bf16();
    tile.left = [&](int64_t i, Value step) {
      return loadLeft(e, input, placeOf(i, step), products.bf16());
    };
    bool ahead = prefetchesAhead(products, phase, tile.rows);
    tile.right = [&](int64_t column, Value step) {
      Value memref = some[column / panels], zero = e.index(0);
      Value at[] = {e.add(panel, column % panels), step, zero};
      if (ahead)
        e.prefetch(memref, {at[0], e.add(step, prefetchDistance / stepBytes), zero}, false,
                   Emit::Near::second);
      return e.loadVector(memref, at, perStep());
    };
    int64_t steps = products.bf16() ? products.depth() / 2 : products.depth();
    tile.unroll = steps % 4 == 0 ? 4 : 1;
    SmallVector<Value> sums = emitProduct(e, target, tile, e.index(steps));
    if (!products.bf16() || products.depth() % 2 == 0)
      return sums;
    // The last k of an odd depth: its partner in the weight is a zero of the padding, its partner
    // in the input is not read.
    tile.unroll = 1;
    tile.left = [&](int64_t i, Value) -> Value {
      Value last = e.load(input, placeOf(i, e.index(products.depth() - 1)));
      return arith::ExtUIOp::create(e.b, e.loc, e.i32(), last);
    };
    auto right = tile.right;
    tile.right = [&](int64_t column, Value) { return right(column, e.index(steps)); };
    return emitProduct(e, target, tile, e.index(1), sums);
  }

  Value windowOf(Value panels) {
    Size steps =
        constantSize(products.bf16() ? llvm::divideCeil(products.depth(), 2) : products.depth());
    Size shape[] = {constantSize(products.experts() * products.panels()), steps,
                    constantSize(perStep())};
    return kernel.window(panels, shape, rowMajor(shape));
  }
  static constexpr int64_t stepBytes = 64;
  int64_t perStep() const { return products.bf16() ? 2 * lanes : lanes; }

  Products products;
  KernelBuilder &kernel;
  Phase phase;
  const Target &target;
  Emit &e;
  Value input;
  SmallVector<Value> weights;
};

} // namespace

std::unique_ptr<InnerProduct> makeFloatProduct(const Products &products, KernelBuilder &kernel) {
  return std::make_unique<FloatProduct>(products, kernel);
}

} // namespace heddle::codegen
