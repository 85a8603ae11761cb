// Products with Q4_K and Q6_K: 256 k in parts, each with a small scale of its own.
//
// A part's weights are bits of bytes that it shares with other parts: its group. Decode takes a
// group apart in registers, so that the panel stays one stream that is read once. Prefill does so
// once for all rows of a tile: the quads go to the worker's scratch, and the loop over the rows has
// products and scales alone.
#include "codegen/kernels/block_product.h"
#include "codegen/plan.h"
#include "runtime/quantized/block_panels.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

using runtime::quadBytes;

constexpr int64_t blockQuads = 64, groups = 4;

/// How a format shares its bytes: `parts` parts of `quads` quads each in a group. The groups come
/// in `runs` runs; within one the places along k go up evenly.
struct Group {
  int64_t parts, quads, runs;
};

class KBlockProduct : public BlockProduct {
public:
  KBlockProduct(const Products &products, KernelBuilder &kernel, int64_t panelBlock, Group group)
      : BlockProduct(products, kernel), panelBlock(panelBlock), group(group),
        prefill(kernel.context.phase == Phase::prefill) {}

  int64_t scratchBytes(int64_t panels) const override {
    return prefill ? panels * products.weights * unpackedBytes() : 0;
  }

  void enterPanels(Value panel, int64_t panels) override {
    if (!prefill)
      return;
    rowStarts.clear();
    enterColumns(panel, panels);
    unpacked =
        kernel.scratchWindow({constantSize(scratchBytes(panels))}, e.b.getI8Type(), e.index(0));
    e.loop(e.index(0), e.index(blocks()), 1, [&](Value index) {
      enterBlock(index, 0, panelBlock);
      e.loop(e.index(0), e.index(groups), 1, [&](Value at) {
        e.loop(e.index(0), e.index(group.quads), 1, [&](Value quad) {
          for (auto [part, ofPart] : llvm::enumerate(takeApart(at, quad)))
            for (auto [c, quads] : llvm::enumerate(ofPart))
              e.storeVector(quads, unpacked,
                            unpackedAt(index, e.add(e.mul(at, group.parts), part), quad, c));
        });
      });
    });
  }

protected:
  /// For every part of a group, quad `quad` of all columns.
  virtual SmallVector<SmallVector<Value>> takeApart(Value groupIndex, Value quad) = 0;
  struct GroupPlace {
    Value run, inRun;
  };
  int64_t groupsOfRun() const { return groups / group.runs; }
  Value indexOf(GroupPlace at) { return e.add(e.mul(at.run, groupsOfRun()), at.inRun); }
  /// The place along k of a part, which stand in the order of their groups.
  virtual Value placeOf(GroupPlace at, Value inGroup) = 0;
  /// What the integer sums of the part at `place` start from.
  virtual Sums startOf(Value place) = 0;
  virtual Value partScale(Bytes &from, Value at, Value part) = 0;
  /// Adds to `carried` what the parts of a block came to.
  virtual Sums finish(ValueRange carried, const Sums &partial) = 0;

private:
  Sums tile() override {
    return overBlocks(blockQuads * 4, panelBlock, [&](Value index, ValueRange carried) {
      return finish(carried, prefill ? fromScratch(index) : fromPanel());
    });
  }

  /// As many parts at a time as there are registers for.
  Sums fromPanel() {
    auto fit = llvm::bit_floor(uint64_t(std::max<int64_t>(16 / (rows() * columns()), 1)));
    int64_t together = std::min(int64_t(fit), group.parts);
    auto addGroup = [&](GroupPlace at, ValueRange before) {
      int64_t share = llvm::divideCeil(panelBlock, groups);
      prefetchAhead(e.mul(indexOf(at), share), share);
      Sums sums(before);
      for (int64_t first = 0; first < group.parts; first += together)
        addParts(sums, at, first, together);
      return sums;
    };
    // A loop for each run: so addresses are linear in what is counted, and LLVM finds its way from
    // one to the next in a fifth of the time.
    return e.loop(e.index(0), e.index(group.runs), 1, zeros(), [&](Value run, ValueRange all) {
      return e.loop(e.index(0), e.index(groupsOfRun()), 1, all,
                    [&](Value inRun, ValueRange before) { return addGroup({run, inRun}, before); });
    });
  }

  void addParts(Sums &sums, GroupPlace at, int64_t first, int64_t count) {
    Value groupIndex = indexOf(at);
    SmallVector<Value> parts, rowQuads;
    Sums integers;
    for (int64_t i = 0; i < count; ++i) {
      parts.push_back(e.add(e.mul(groupIndex, group.parts), first + i));
      Value place = placeOf(at, e.index(first + i));
      rowQuads.push_back(e.mul(place, group.quads));
      integers.append(startOf(place));
    }
    auto ofPart = [&](MutableArrayRef<Value> all, int64_t i) {
      return all.slice(i * rows() * columns(), rows() * columns());
    };
    overQuads(integers, [&](Sums &some, Value quad) {
      auto apart = takeApart(groupIndex, quad);
      for (int64_t i = 0; i < count; ++i)
        multiplyQuad(ofPart(some, i), apart[first + i], e.add(rowQuads[i], quad));
    });
    for (int64_t i = 0; i < count; ++i)
      addPart(sums, ofPart(integers, i), parts[i]);
  }

  /// Parts in a loop, though their number is known: more code would not be faster.
  Sums fromScratch(Value index) {
    return e.loop(
        e.index(0), e.index(groups * group.parts), 1, zeros(), [&](Value part, ValueRange before) {
          Value groupIndex = e.div(part, group.parts);
          Value place =
              placeOf({e.div(groupIndex, groupsOfRun()), e.rem(groupIndex, groupsOfRun())},
                      e.rem(part, group.parts));
          Sums sums(before), integers = startOf(place);
          Value rowQuad = e.mul(place, group.quads);
          overQuads(integers, [&](Sums &some, Value quad) {
            SmallVector<Value> quads;
            for (int64_t c = 0; c < columns(); ++c)
              quads.push_back(e.loadVector(unpacked, unpackedAt(index, part, quad, c), quadBytes));
            multiplyQuad(some, quads, e.add(rowQuad, quad));
          });
          addPart(sums, integers, part);
          return sums;
        });
  }

  /// Adds to integer sums what `body` does for each quad of a part: as many in straight code as
  /// pay, for code takes long to compile.
  void overQuads(Sums &sums, llvm::function_ref<void(Sums &, Value)> body) {
    constexpr int64_t enough = 48;
    int64_t straight = group.quads;
    while (straight > 1 && straight * int64_t(sums.size()) > enough)
      straight /= 2;
    auto several = [&](Value first, ValueRange before) {
      Sums after(before);
      for (int64_t i = 0; i < straight; ++i)
        body(after, e.add(first, i));
      return after;
    };
    sums = straight == group.quads
               ? several(e.index(0), sums)
               : e.loop(e.index(0), e.index(group.quads), straight, sums, several);
  }

  /// Adds the integer sums of a part times its scales.
  void addPart(Sums &partial, ArrayRef<Value> integers, Value part) {
    auto scales = ofColumns([&](Bytes &from, Value at) { return partScale(from, at, part); });
    for (auto [i, sum] : llvm::enumerate(integers))
      partial[i] = e.fma(toFloat(sum), scales[i % columns()], partial[i]);
  }

  Value unpackedAt(Value block, Value part, Value quad, int64_t column) {
    Value quads = e.add(e.mul(block, blockQuads), e.add(e.mul(part, group.quads), quad));
    return e.add(e.mul(quads, quadBytes), column * unpackedBytes());
  }
  int64_t blocks() const { return llvm::divideCeil(products.depth(), blockQuads * 4); }
  int64_t unpackedBytes() const { return blocks() * blockQuads * quadBytes; }

  int64_t panelBlock;
  Group group;
  bool prefill;
  Value unpacked;
};

/// Two parts of 32 k share bytes, one nibble each; minima are taken off by the rows' sums.
class Q4KProduct : public KBlockProduct {
public:
  Q4KProduct(const Products &products, KernelBuilder &kernel)
      : KBlockProduct(products, kernel, runtime::q4_kPanel::bytes,
                      {.parts = 2, .quads = 8, .runs = 1}) {}

private:
  SmallVector<SmallVector<Value>> takeApart(Value pair, Value quad) override {
    using namespace runtime::q4_kPanel;
    auto packed = quadsAt(e.add(e.add(e.mul(pair, 8 * quadBytes), e.mul(quad, quadBytes)), quads));
    return {bits(packed, 0, 15), bits(packed, 4, 15)};
  }
  Value placeOf(GroupPlace pair, Value inPair) override {
    return e.add(e.mul(indexOf(pair), 2), inPair);
  }
  Sums startOf(Value) override { return integerZeros(); }
  Value partScale(Bytes &from, Value at, Value part) override {
    return from.unsignedBytes(e.add(e.add(at, e.mul(part, lanes)), runtime::q4_kPanel::partScales));
  }

  Sums finish(ValueRange carried, const Sums &partial) override {
    using namespace runtime::q4_kPanel;
    Sums below = minimaTimesSums();
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

  /// Two parts at a time.
  Sums minimaTimesSums() {
    using namespace runtime::q4_kPanel;
    Sums below = integerZeros();
    for (int64_t pair = 0; pair < groups; ++pair) {
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
    return below;
  }
};

/// Four parts of 16 k share bytes: pairs of them the low nibbles, all of them the high two bits.
class Q6KProduct : public KBlockProduct {
public:
  Q6KProduct(const Products &products, KernelBuilder &kernel)
      : KBlockProduct(products, kernel, runtime::q6_kPanel::bytes,
                      {.parts = 4, .quads = 4, .runs = 2}) {}

private:
  SmallVector<SmallVector<Value>> takeApart(Value groupIndex, Value quad) override {
    using namespace runtime::q6_kPanel;
    Value first = e.add(e.add(e.mul(groupIndex, groupBytes), e.mul(quad, 3 * quadBytes)), quads);
    SmallVector<Value> low[] = {quadsAt(first), quadsAt(e.add(first, quadBytes))};
    SmallVector<Value> high = quadsAt(e.add(first, 2 * quadBytes));
    SmallVector<SmallVector<Value>> parts;
    for (int64_t part = 0; part < 4; ++part) {
      SmallVector<Value> whole;
      for (auto [lowBits, highBits] : llvm::zip(low[part % 2], high))
        whole.push_back(arith::OrIOp::create(e.b, e.loc, bits(lowBits, part / 2 * 4, 0x0f),
                                             bits(highBits, 2 * part - 4, 0x30)));
      parts.push_back(std::move(whole));
    }
    return parts;
  }
  /// A block is two halves of 128 k, each of them four quarters, each of these two parts. A group
  /// has one part of every quarter; a half has a run of two.
  Value placeOf(GroupPlace at, Value quarter) override {
    return e.add(e.add(e.mul(at.run, 8), at.inRun), e.mul(quarter, 2));
  }
  Sums startOf(Value place) override { return startFrom(e.add(e.mul(place, 4), layout.sums16)); }
  Value partScale(Bytes &from, Value at, Value part) override {
    return from.signedBytes(e.add(e.add(at, e.mul(part, lanes)), runtime::q6_kPanel::partScales));
  }

  Sums finish(ValueRange carried, const Sums &partial) override {
    auto scale = ofColumns(
        [&](Bytes &from, Value at) { return from.halves(e.add(at, runtime::q6_kPanel::scales)); });
    SmallVector<Value> ofRows = rowScales();
    Sums next;
    for (auto [i, sum] : llvm::enumerate(partial))
      next.push_back(e.fma(times(sum, scale[i % columns()]), ofRows[i / columns()], carried[i]));
    return next;
  }
};

} // namespace

std::unique_ptr<InnerProduct> makeKBlockProduct(const Products &products, KernelBuilder &kernel) {
  if (products.blocks().getKind() == BlockKind::Q4_K)
    return std::make_unique<Q4KProduct>(products, kernel);
  return std::make_unique<Q6KProduct>(products, kernel);
}

} // namespace heddle::codegen
