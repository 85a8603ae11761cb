// Sums of products with weights in quantised blocks.
//
// Inside a block, or a part of one that has a scale of its own, everything is an integer; what the
// scales make of it is summed in f32, block after block, k ascending. That order is the same for
// every tile, so one row gives what 512 give.
//
// Multiplies are what limits: vpdpbusd shares its ports with those of the scales and with nothing
// else here (conversions, unpacking, broadcasts). So scales are joined first where several sums
// share them, and offsets cost nothing: unsigned weights are 128 (or 32, 8) too large, and the sums
// start from that many times the row's own sum, which `quantise` has stored.
#include "codegen/element_types.h"
#include "codegen/kernels/bytes.h"
#include "codegen/kernels/inner_product.h"
#include "codegen/kernels/int8_dot.h"
#include "runtime/quantized/block_panels.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

using runtime::quadBytes;

class QuantisedProduct : public InnerProduct {
public:
  QuantisedProduct(const Products &products, KernelBuilder &kernel)
      : products(products), kernel(kernel), e(kernel.emit), dot(e, kernel.context.target),
        kind(products.blocks().getKind()), layout(rowBlocks(products.blocks().rowsFor())),
        input(e, kernel.flat({Ref::operand, 0}, products.blocks())) {
    for (unsigned i = 0; i < products.weights; ++i)
      weights.emplace_back(e, kernel.flat({Ref::panels, 1 + i}, products.blocks()));
  }

  SmallVector<Value> emit(ArrayRef<Value> leading, ArrayRef<Value> rowIndices, Value panel,
                          int64_t panels) override {
    ArrayRef<Size> sizes = kernel.context.dims.sizes(products.op->getOperand(0));
    Value part = e.index(0);
    for (auto [index, size] : llvm::zip(leading, sizes))
      part = e.add(e.mul(part, kernel.size(size)), index);
    if (!leading.empty())
      part = e.mul(part, kernel.size(sizes[sizes.size() - 2]));
    rowStarts.clear();
    for (Value row : rowIndices)
      rowStarts.push_back(e.mul(e.add(part, row), layout.rowBytes(products.depth())));
    columnStarts.clear();
    columnBytes.clear();
    for (Bytes &weight : weights)
      for (int64_t i = 0; i < panels; ++i) {
        columnStarts.push_back(e.mul(e.add(panel, i), products.panelBytes()));
        columnBytes.push_back(&weight);
      }
    switch (kind) {
    case BlockKind::Q8_0:
      return overBlocks(runtime::q8_0Panel::length, runtime::q8_0Panel::bytes,
                        [&](ValueRange sums) { return blockQ8(sums); });
    case BlockKind::Q4_0:
      return overBlocks(runtime::q4_0Panel::length, runtime::q4_0Panel::bytes,
                        [&](ValueRange sums) { return blockQ4(sums); });
    case BlockKind::Q4_K:
      return overBlocks(runtime::q4_kPanel::length, runtime::q4_kPanel::bytes,
                        [&](ValueRange sums) { return blockQ4K(sums); });
    case BlockKind::Q6_K:
      return overBlocks(runtime::q6_kPanel::length, runtime::q6_kPanel::bytes,
                        [&](ValueRange sums) { return blockQ6K(sums); });
    case BlockKind::Int8:
      return wholeInt8();
    case BlockKind::Row32:
    case BlockKind::Row256:
      break;
    }
    llvm_unreachable("a weight has a weight's format");
  }

private:
  using Sums = SmallVector<Value>;

  int64_t rows() const { return rowStarts.size(); }
  int64_t columns() const { return columnStarts.size(); }
  Sums zeros() { return Sums(rows() * columns(), e.splat(0)); }
  Sums integerZeros() {
    Value zero = arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(e.vec(e.i32())));
    return Sums(rows() * columns(), zero);
  }

  /// The f32 sums over all blocks; `block` adds one, at `rowAt` and `columnAt`.
  Sums overBlocks(int64_t length, int64_t bytes, llvm::function_ref<Sums(ValueRange)> block) {
    int64_t count = llvm::divideCeil(products.depth(), length);
    return e.loop(e.index(0), e.index(count), 1, zeros(), [&](Value index, ValueRange sums) {
      enterBlock(index, 0, bytes);
      return block(sums);
    });
  }

  /// Block `index`, of `bytes` from byte `from` of the panel on.
  void enterBlock(Value index, int64_t from, int64_t bytes) {
    rowAt.clear();
    for (Value start : rowStarts)
      rowAt.push_back(e.add(start, e.mul(index, layout.bytes)));
    columnAt.clear();
    for (Value start : columnStarts)
      columnAt.push_back(e.add(e.add(start, e.mul(index, bytes)), from));
  }

  /// What every column has at `offset` of the block.
  template <class Load>
  SmallVector<Value> ofColumns(Load load) {
    SmallVector<Value> all;
    for (int64_t c = 0; c < columns(); ++c)
      all.push_back(load(*columnBytes[c], columnAt[c]));
    return all;
  }

  /// Integer sums that start from what every row has at `offset`.
  Sums startFrom(int64_t offset) {
    Sums sums;
    for (Value row : rowAt)
      sums.append(columns(), input.repeated(e.add(row, offset), e.i32()));
    return sums;
  }

  /// Adds a quad of every column (64 x i8) times that of every row at quad `quad` of the block.
  void multiplyQuad(Sums &sums, ArrayRef<Value> quads, Value quad) {
    Value offset = e.add(e.mul(quad, 4), layout.values);
    for (int64_t r = 0; r < rows(); ++r) {
      Int8Dot::Left left = dot.left(input.repeated(e.add(rowAt[r], offset), e.i32()));
      for (int64_t c = 0; c < columns(); ++c)
        sums[r * columns() + c] = dot.multiply(sums[r * columns() + c], quads[c], left);
    }
  }

  SmallVector<Value> quadsAt(Value offset) {
    return ofColumns(
        [&](Bytes &bytes, Value at) { return bytes.load(e.add(at, offset), quadBytes); });
  }

  Value constantBytes(int64_t value) {
    return arith::ConstantOp::create(
        e.b, e.loc,
        DenseElementsAttr::get(e.vec(e.b.getI8Type(), quadBytes), e.b.getI8IntegerAttr(value)));
  }
  /// Every byte shifted right by `shift` (a scalar i16, null: not at all) and masked.
  SmallVector<Value> bits(ArrayRef<Value> quads, Value shift, int64_t mask) {
    Value by = shift ? e.broadcast(shift, quadBytes / 2) : Value();
    return llvm::map_to_vector(quads, [&](Value each) -> Value {
      if (by) {
        Value pairs = e.bitcast(each, e.vec(e.b.getI16Type(), quadBytes / 2));
        pairs = arith::ShRUIOp::create(e.b, e.loc, pairs, by);
        each = e.bitcast(pairs, e.vec(e.b.getI8Type(), quadBytes));
      }
      return arith::AndIOp::create(e.b, e.loc, each, constantBytes(mask));
    });
  }

  /// In decode, which reads every panel once: asks for what comes some KB later. The hardware looks
  /// ahead as well, but not far enough for code that does much with every line. Part `index` of
  /// `count` parts of a block of `bytes` asks for its share.
  void prefetchAhead(Value index, int64_t count, int64_t bytes) {
    if (kernel.context.phase != Phase::decode)
      return;
    constexpr int64_t ahead = 4096;
    int64_t share = llvm::divideCeil(bytes, count);
    for (int64_t c = 0; c < columns(); ++c)
      for (int64_t at = 0; at < share; at += quadBytes)
        columnBytes[c]->prefetch(e.add(e.add(columnAt[c], e.mul(index, share)), ahead + at));
  }

  Value toFloat(Value integers) {
    return arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), integers);
  }
  Value times(Value a, Value b) { return arith::MulFOp::create(e.b, e.loc, a, b); }

  SmallVector<Value> rowScales() {
    return llvm::map_to_vector(
        rowAt, [&](Value row) { return input.repeated(e.add(row, layout.scale), e.f32()); });
  }

  /// Adds integer sums times the scales of columns and rows.
  Sums scaled(ValueRange carried, const Sums &integers, ArrayRef<Value> scales) {
    SmallVector<Value> ofRows = rowScales();
    Sums next;
    for (auto [i, sum] : llvm::enumerate(integers)) {
      Value scale = times(scales[i % columns()], ofRows[i / columns()]);
      next.push_back(e.fma(toFloat(sum), scale, carried[i]));
    }
    return next;
  }

  Sums blockQ8(ValueRange carried) {
    auto scales = ofColumns([&](Bytes &bytes, Value at) {
      return bytes.halves(e.add(at, runtime::q8_0Panel::scales));
    });
    Sums sums = startFrom(layout.sum);
    for (int64_t quad = 0; quad < 8; ++quad)
      multiplyQuad(sums, quadsAt(e.index(runtime::q8_0Panel::quads + quad * quadBytes)),
                   e.index(quad));
    return scaled(carried, sums, scales);
  }

  Sums blockQ4(ValueRange carried) {
    auto scales = ofColumns([&](Bytes &bytes, Value at) {
      return bytes.halves(e.add(at, runtime::q4_0Panel::scales));
    });
    Sums sums;
    Value four = arith::ConstantOp::create(
        e.b, e.loc, DenseElementsAttr::get(e.vec(e.i32()), e.b.getI32IntegerAttr(4)));
    // -8 times the row's sum, of -128 times.
    for (Value row : rowAt)
      sums.append(columns(),
                  arith::ShRSIOp::create(e.b, e.loc,
                                         input.repeated(e.add(row, layout.sum), e.i32()), four));
    prefetchAhead(e.index(0), 1, runtime::q4_0Panel::bytes);
    for (int64_t quad = 0; quad < 4; ++quad) {
      auto packed = quadsAt(e.index(runtime::q4_0Panel::quads + quad * quadBytes));
      multiplyQuad(sums, bits(packed, nullptr, 15), e.index(quad));
      multiplyQuad(sums, bits(packed, e.integer(4, 16), 15), e.index(quad + 4));
    }
    return scaled(carried, sums, scales);
  }

  /// Adds the integer sums of a part times its scales in `partial`.
  void addPart(Sums &partial, const Sums &integers, ArrayRef<Value> scales) {
    for (auto [i, sum] : llvm::enumerate(integers))
      partial[i] = e.fma(toFloat(sum), scales[i % columns()], partial[i]);
  }

  Sums blockQ4K(ValueRange carried) {
    using namespace runtime::q4_kPanel;
    // Parts in a loop, though their number is known: more code would not be faster, and registers
    // would hold what the next part reads again.
    Sums partial = e.loop(e.index(0), e.index(8), 1, zeros(), [&](Value part, ValueRange before) {
      prefetchAhead(part, 8, bytes);
      auto partScale = ofColumns([&](Bytes &from, Value at) {
        return from.unsignedBytes(e.add(e.add(at, e.mul(part, lanes)), partScales));
      });
      Value shift = e.toInt(e.mul(e.rem(part, 2), 4), 16), pair = e.div(part, 2);
      Sums integers = integerZeros(), sums(before);
      for (int64_t quad = 0; quad < 8; ++quad) {
        Value packed = e.add(e.mul(pair, 8 * quadBytes), quads + quad * quadBytes);
        multiplyQuad(integers, bits(quadsAt(packed), shift, 15), e.add(e.mul(part, 8), quad));
      }
      addPart(sums, integers, partScale);
      return sums;
    });
    // Minima times the rows' sums, two parts at a time.
    Sums below = integerZeros();
    for (int64_t pair = 0; pair < 4; ++pair) {
      auto pairs = ofColumns([&](Bytes &from, Value at) -> Value {
        Value packed = from.load(e.add(at, partMinima + pair * 2 * lanes), 2 * lanes);
        return arith::ExtUIOp::create(e.b, e.loc, e.vec(e.b.getI16Type(), 2 * lanes), packed);
      });
      for (int64_t r = 0; r < rows(); ++r) {
        Value sums = input.repeated(e.add(rowAt[r], layout.sums32 + pair * 4), e.i32());
        for (int64_t c = 0; c < columns(); ++c) {
          Value &sum = below[r * columns() + c];
          sum = dot.multiplyPairs(sum, pairs[c], sums);
        }
      }
    }
    auto scale = ofColumns(
        [&](Bytes &from, Value at) { return from.halves(e.add(at, runtime::q4_kPanel::scales)); });
    auto minimum = ofColumns([&](Bytes &from, Value at) -> Value {
      return arith::NegFOp::create(e.b, e.loc, from.halves(e.add(at, minima)));
    });
    SmallVector<Value> ofRows = rowScales();
    Sums next;
    for (auto [i, sum] : llvm::enumerate(partial)) {
      Value value =
          e.fma(toFloat(below[i]), minimum[i % columns()], times(sum, scale[i % columns()]));
      next.push_back(e.fma(value, ofRows[i / columns()], carried[i]));
    }
    return next;
  }

  Sums blockQ6K(ValueRange carried) {
    using namespace runtime::q6_kPanel;
    Sums partial = e.loop(e.index(0), e.index(16), 1, zeros(), [&](Value part, ValueRange before) {
      prefetchAhead(part, 16, bytes);
      Sums sums(before);
      addPartQ6K(sums, part);
      return sums;
    });
    auto scale = ofColumns(
        [&](Bytes &from, Value at) { return from.halves(e.add(at, runtime::q6_kPanel::scales)); });
    SmallVector<Value> ofRows = rowScales();
    Sums next;
    for (auto [i, sum] : llvm::enumerate(partial))
      next.push_back(e.fma(times(sum, scale[i % columns()]), ofRows[i / columns()], carried[i]));
    return next;
  }

  /// 16 k: of half h and its quarter q, part 8h + 2q + v has the quads 4v to 4v + 3.
  void addPartQ6K(Sums &sums, Value part) {
    using namespace runtime::q6_kPanel;
    Value half = e.div(part, 8), quarter = e.rem(e.div(part, 2), 4);
    Value first = e.mul(e.rem(part, 2), 4);
    Value lowShift = e.toInt(e.mul(e.div(quarter, 2), 4), 16);
    Value highShift = e.toInt(e.mul(quarter, 2), 16);
    Value lowAt = e.add(e.mul(half, 16), e.add(e.mul(e.rem(quarter, 2), 8), first));
    Value highAt = e.add(e.mul(half, 8), first);
    auto partScale = ofColumns([&](Bytes &from, Value at) {
      return from.signedBytes(e.add(e.add(at, e.mul(part, lanes)), partScales));
    });
    Sums integers;
    for (Value row : rowAt)
      integers.append(columns(),
                      input.repeated(e.add(e.add(row, e.mul(part, 4)), layout.sums16), e.i32()));
    for (int64_t quad = 0; quad < 4; ++quad) {
      auto four =
          bits(quadsAt(e.add(e.mul(lowAt, quadBytes), low + quad * quadBytes)), lowShift, 15);
      auto two =
          bits(quadsAt(e.add(e.mul(highAt, quadBytes), high + quad * quadBytes)), highShift, 3);
      SmallVector<Value> whole;
      for (auto [lowBits, highBits] : llvm::zip(four, two))
        whole.push_back(arith::OrIOp::create(e.b, e.loc, lowBits, shiftedUp(highBits)));
      multiplyQuad(integers, whole, e.add(e.mul(part, 4), quad));
    }
    addPart(sums, integers, partScale);
  }

  /// Bytes below 16, times 16.
  Value shiftedUp(Value quads) {
    VectorType pairs = e.vec(e.b.getI16Type(), quadBytes / 2);
    Value four = arith::ConstantOp::create(e.b, e.loc,
                                           DenseElementsAttr::get(pairs, e.b.getI16IntegerAttr(4)));
    Value up = arith::ShLIOp::create(e.b, e.loc, e.bitcast(quads, pairs), four);
    return e.bitcast(up, e.vec(e.b.getI8Type(), quadBytes));
  }

  /// One integer sum for each block of the row; the columns' scales come at the end.
  Sums wholeInt8() {
    using namespace runtime::int8Panel;
    int64_t whole = products.depth() / layout.length;
    int64_t rest = llvm::divideCeil(products.depth() % layout.length, padding);
    auto block = [&](Value index, int64_t groups, ValueRange carried) {
      enterBlock(index, quads, layout.length / 4 * quadBytes);
      Sums start = startFrom(layout.sum);
      Sums integers =
          e.loop(e.index(0), e.index(groups), 1, start, [&](Value group, ValueRange before) {
            Sums sums(before);
            for (int64_t quad = 0; quad < 8; ++quad)
              multiplyQuad(sums, quadsAt(e.add(e.mul(group, 8 * quadBytes), quad * quadBytes)),
                           e.add(e.mul(group, 8), quad));
            return sums;
          });
      SmallVector<Value> ofRows = rowScales();
      Sums next;
      for (auto [i, sum] : llvm::enumerate(integers))
        next.push_back(e.fma(toFloat(sum), ofRows[i / columns()], carried[i]));
      return next;
    };
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

  Products products;
  KernelBuilder &kernel;
  Emit &e;
  Int8Dot dot;
  BlockKind kind;
  RowBlocks layout;
  Bytes input;
  SmallVector<Bytes, 2> weights;
  // Of the tile: where its rows and columns start, then where the block at hand does.
  SmallVector<Value> rowStarts, columnStarts, rowAt, columnAt;
  SmallVector<Bytes *> columnBytes;
};

} // namespace

std::unique_ptr<InnerProduct> makeQuantisedProduct(const Products &products,
                                                   KernelBuilder &kernel) {
  return std::make_unique<QuantisedProduct>(products, kernel);
}

} // namespace heddle::codegen
