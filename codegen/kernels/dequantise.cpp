// Rows of weights as f32. The arithmetic is that of the codecs (runtime/quantized), so that a
// look-up gives their values exactly, wherever the bytes lie.
#include "codegen/kernels/dequantise.h"

#include "codegen/element_types.h"
#include "codegen/kernels/bytes.h"
#include "codegen/kernels/region.h"
#include "runtime/packing.h"
#include "runtime/quantized/block_panels.h"
#include "runtime/quantized/codec.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// Where the parts of one block lie. Parts along k are counted from 0.
class BlockPlace {
public:
  BlockPlace(Emit &e, Value bytes, Value at) : e(e), bytes(e, bytes), at(at) {}
  virtual ~BlockPlace() = default;

  /// The scale, and of Q4_K that of the minima, as f32.
  virtual Value step() = 0;
  virtual Value leastStep() = 0;
  /// Of Q4_K: scale and minimum of 32 k, as i32.
  virtual std::pair<Value, Value> scaleOf(int64_t part) = 0;
  /// Of Q6_K: the scale of 16 k, as i32.
  virtual Value levelOf(int64_t part) = 0;
  /// 16 bytes of the values, from byte `offset` of those that a block of a file has.
  virtual Value values(int64_t offset) = 0;

protected:
  Value byteAt(Value place) {
    return arith::ExtUIOp::create(e.b, e.loc, e.i32(), bytes.scalar(place, e.b.getI8Type()));
  }
  Value signedByteAt(Value place) {
    return arith::ExtSIOp::create(e.b, e.loc, e.i32(), bytes.scalar(place, e.b.getI8Type()));
  }
  Value halfAt(Value place) {
    return arith::ExtFOp::create(e.b, e.loc, e.f32(), bytes.scalar(place, e.b.getF16Type()));
  }

  Emit &e;
  Bytes bytes;
  Value at; ///< the block's first byte
};

/// Some bits of an integer, or of each in a vector.
Value bitsOf(Emit &e, Value value, int64_t shift, int64_t mask) {
  Type type = value.getType();
  auto constant = [&](int64_t number) { return e.filled(type, number); };
  if (shift > 0)
    value = arith::ShRUIOp::create(e.b, e.loc, value, constant(shift));
  if (shift < 0)
    value = arith::ShLIOp::create(e.b, e.loc, value, constant(-shift));
  return arith::AndIOp::create(e.b, e.loc, value, constant(mask));
}

Value either(Emit &e, Value a, Value b) { return arith::OrIOp::create(e.b, e.loc, a, b); }

/// A block of a row, as files have it.
class BlockOfRow final : public BlockPlace {
public:
  BlockOfRow(Emit &e, BlockKind kind, Value bytes, Value at)
      : BlockPlace(e, bytes, at), kind(kind) {}

  Value step() override { return halfAt(e.add(at, kind == BlockKind::Q6_K ? 208 : 0)); }
  Value leastStep() override { return halfAt(e.add(at, 2)); }
  std::pair<Value, Value> scaleOf(int64_t part) override {
    auto byte = [&](int64_t offset) { return byteAt(e.add(at, offset)); };
    if (part < 4)
      return {bitsOf(e, byte(4 + part), 0, 63), bitsOf(e, byte(8 + part), 0, 63)};
    Value lowBits = byte(8 + part);
    return {either(e, bitsOf(e, lowBits, 0, 15), bitsOf(e, byte(part), 2, 0x30)),
            either(e, bitsOf(e, lowBits, 4, 15), bitsOf(e, byte(4 + part), 2, 0x30))};
  }
  Value levelOf(int64_t part) override { return signedByteAt(e.add(at, 192 + part)); }
  Value values(int64_t offset) override {
    int64_t first = kind == BlockKind::Q6_K ? 0 : kind == BlockKind::Q4_K ? 16 : 2;
    return bytes.load(e.add(at, first + offset), lanes);
  }

private:
  BlockKind kind;
};

/// The same block as a column of a panel; see runtime/quantized/block_panels.h.
class BlockOfPanel final : public BlockPlace {
public:
  BlockOfPanel(Emit &e, BlockKind kind, Value bytes, Value at, Value lane)
      : BlockPlace(e, bytes, at), kind(kind), lane(lane) {}

  Value step() override { return halfAt(own(0, 2)); }
  Value leastStep() override { return halfAt(own(runtime::q4_kPanel::minima, 2)); }
  std::pair<Value, Value> scaleOf(int64_t part) override {
    using namespace runtime::q4_kPanel;
    return {byteAt(own(partScales + part * lanes, 1)),
            byteAt(own(partMinima + part / 2 * lanes * 2 + part % 2, 2))};
  }
  Value levelOf(int64_t part) override {
    int64_t group = part / 8 * 2 + part % 2, quarter = part % 8 / 2;
    return signedByteAt(own(runtime::q6_kPanel::partScales + (group * 4 + quarter) * lanes, 1));
  }
  Value values(int64_t offset) override {
    using runtime::quadBytes;
    switch (kind) {
    case BlockKind::Q8_0:
      return quads(runtime::q8_0Panel::quads + offset / 4 * quadBytes, quadBytes, 0x80);
    case BlockKind::Q4_0:
      return quads(runtime::q4_0Panel::quads + offset / 4 * quadBytes, quadBytes, 0);
    case BlockKind::Q4_K:
      return quads(runtime::q4_kPanel::quads + offset / 4 * quadBytes, quadBytes, 0);
    case BlockKind::Int8:
      return quads(offset / 4 * quadBytes, quadBytes, 0x80);
    default:
      break;
    }
    // The low halves of 128 k are 64 bytes, the high pairs of bits 32.
    bool isHigh = offset >= 128;
    int64_t half = isHigh ? (offset - 128) / 32 : offset / 64, inside = offset % 32;
    int64_t row = isHigh ? 2 : offset % 64 / 32, group = half * 2 + inside / 16;
    return quads(runtime::q6_kPanel::quads + group * runtime::q6_kPanel::groupBytes +
                     row * quadBytes,
                 3 * quadBytes, 0);
  }

private:
  /// The part of `width` bytes of this column, where those of all begin at `offset`.
  Value own(int64_t offset, int64_t width) { return e.add(e.add(at, offset), e.mul(lane, width)); }
  /// Four quads, `stride` apart; `flip` is xor-ed to every byte.
  Value quads(int64_t offset, int64_t stride, int64_t flip) {
    SmallVector<Value> parts;
    for (int64_t i = 0; i < 4; ++i)
      parts.push_back(bytes.scalar(own(offset + i * stride, 4), e.i32()));
    Value together = vector::FromElementsOp::create(e.b, e.loc, e.vec(e.i32(), 4), parts);
    Value loaded = e.bitcast(together, e.vec(e.b.getI8Type()));
    if (flip == 0)
      return loaded;
    return arith::XOrIOp::create(e.b, e.loc, loaded, e.filled(loaded.getType(), flip));
  }

  BlockKind kind;
  Value lane;
};

/// The values of one block, 16 at a time.
struct BlockReader {
  Emit &e;
  BlockKind kind;
  BlockPlace &place;

  Value unsignedBytes(int64_t offset) {
    return arith::ExtUIOp::create(e.b, e.loc, e.vec(e.i32()), place.values(offset));
  }
  Value scaled(Value integers, int64_t less, Value step) {
    Value values = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), integers);
    if (less)
      values = arith::SubFOp::create(e.b, e.loc, values, e.splat(double(less)));
    return arith::MulFOp::create(e.b, e.loc, values, e.broadcast(step));
  }
  Value times(Value factor, Value level) {
    return arith::MulFOp::create(e.b, e.loc, factor,
                                 arith::SIToFPOp::create(e.b, e.loc, e.f32(), level));
  }

  /// Values [from, from + 16).
  Value read(int64_t from) {
    switch (kind) {
    case BlockKind::Q8_0:
      return scaled(arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), place.values(from)), 0,
                    place.step());
    case BlockKind::Q4_0:
      return scaled(bitsOf(e, unsignedBytes(0), from ? 4 : 0, 15), 8, place.step());
    case BlockKind::Q4_K:
      return readQ4K(from);
    default:
      return readQ6K(from);
    }
  }

  Value readQ4K(int64_t from) {
    int64_t part = from / 32;
    auto [scale, minimum] = place.scaleOf(part);
    Value nibbles = bitsOf(e, unsignedBytes(part / 2 * 32 + from % 32), part % 2 ? 4 : 0, 15);
    return arith::SubFOp::create(e.b, e.loc, scaled(nibbles, 0, times(place.step(), scale)),
                                 e.broadcast(times(place.leastStep(), minimum)));
  }

  Value readQ6K(int64_t from) {
    int64_t half = from / 128, quarter = from % 128 / 32, inside = from % 32;
    Value low =
        bitsOf(e, unsignedBytes(half * 64 + quarter % 2 * 32 + inside), quarter / 2 * 4, 15);
    Value high = bitsOf(e, unsignedBytes(128 + half * 32 + inside), quarter * 2 - 4, 0x30);
    return scaled(either(e, low, high), 32, times(place.step(), place.levelOf(from / 16)));
  }
};

/// The values of a row in blocks, each where `placeOf` says of its number.
void emitBlocks(Emit &e, BlockKind kind, int64_t width,
                llvm::function_ref<std::unique_ptr<BlockPlace>(Value block)> placeOf,
                StoreRow store) {
  const runtime::BlockFormat &format = *runtime::findBlockFormat(stringifyBlockKind(kind));
  auto emitBlock = [&](Value block, int64_t count) {
    std::unique_ptr<BlockPlace> place = placeOf(block);
    BlockReader reader{e, kind, *place};
    for (int64_t from = 0; from < count; from += lanes) {
      Value mask = count - from < lanes ? e.mask(e.index(count - from)) : Value();
      store(e.add(e.mul(block, format.length), from), reader.read(from), mask);
    }
  };
  int64_t whole = width / format.length, rest = width % format.length;
  e.loop(e.index(0), e.index(whole), 1, [&](Value block) { emitBlock(block, format.length); });
  if (rest > 0)
    emitBlock(e.index(whole), rest);
}

/// Signed bytes times the one scale of their row.
Value scaledBytes(Emit &e, Value bytes, Value scale) {
  Value wide = arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), bytes);
  Value values = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), wide);
  return arith::MulFOp::create(e.b, e.loc, values, scale);
}

void emitInt8Row(Emit &e, Value bytes, Value start, int64_t width, StoreRow store) {
  Value scale = Bytes(e, bytes).repeated(start, e.f32());
  forLanes(e, e.index(width), [&](Value column, Value mask) {
    Value at = e.add(e.add(start, 4), column);
    Value loaded = mask ? e.loadMasked(bytes, at, mask) : e.loadVector(bytes, at);
    store(column, scaledBytes(e, loaded, scale), mask);
  });
}

/// Panels hold whole quads beyond the last value.
void emitInt8Panel(Emit &e, Value bytes, Value start, Value lane, int64_t width, StoreRow store) {
  Value scale = Bytes(e, bytes).repeated(e.add(start, e.mul(lane, 4)), e.f32());
  forLanes(e, e.index(width), [&](Value column, Value mask) {
    // 16 k are four quads.
    Value at =
        e.add(e.add(start, runtime::int8Panel::quads), e.mul(column, runtime::quadBytes / 4));
    BlockOfPanel place(e, BlockKind::Int8, bytes, at, lane);
    store(column, scaledBytes(e, place.values(0), scale), mask);
  });
}

/// A column of panels of f32 or bf16, whose first value is element `first`.
void emitFloatPanel(Emit &e, Value panels, Value first, bool isBf16, int64_t width,
                    StoreRow store) {
  // In bf16 neighbouring k stand in pairs.
  int64_t group = isBf16 ? 2 : 1;
  auto emit = [&](Value column, int64_t count) {
    Value start = e.add(first, e.mul(column, lanes));
    Type stored = cast<MemRefType>(panels.getType()).getElementType();
    SmallVector<Value> values;
    for (int64_t k = 0; k < lanes; ++k)
      values.push_back(k < count
                           ? e.load(panels, e.add(start, k / group * group * lanes + k % group))
                           : Value(arith::ConstantOp::create(e.b, e.loc, e.b.getZeroAttr(stored))));
    Value vector = vector::FromElementsOp::create(e.b, e.loc, e.vec(stored), values);
    if (isBf16)
      vector = e.fromBf16(e.bitcast(vector, e.vec(e.bf16())));
    store(column, vector, count < lanes ? e.mask(e.index(count)) : Value());
  };
  int64_t whole = width / lanes * lanes;
  e.loop(e.index(0), e.index(whole), lanes, [&](Value column) { emit(column, lanes); });
  if (whole < width)
    emit(e.index(whole), width - whole);
}

} // namespace

void emitDequantisedRow(Emit &e, BlockKind kind, Value bytes, Value start, int64_t width,
                        StoreRow store) {
  if (kind == BlockKind::Int8)
    return emitInt8Row(e, bytes, start, width, store);
  int64_t blockBytes = runtime::findBlockFormat(stringifyBlockKind(kind))->bytes;
  emitBlocks(
      e, kind, width,
      [&](Value block) {
        return std::make_unique<BlockOfRow>(e, kind, bytes, e.add(start, e.mul(block, blockBytes)));
      },
      store);
}

void emitPanelRow(Emit &e, RankedTensorType table, Value panels, Value id, StoreRow store) {
  int64_t width = table.getDimSize(1);
  runtime::PanelShape shape{
      .type = *elementTypeOf(table.getElementType()), .k = width, .n = table.getDimSize(0)};
  Value panel = e.div(id, lanes), lane = e.rem(id, lanes);
  auto blocks = dyn_cast<BlocksType>(table.getElementType());
  if (!blocks) {
    bool isBf16 = table.getElementType().isBF16();
    Value first = e.add(e.mul(panel, shape.paddedK() * lanes), e.mul(lane, isBf16 ? 2 : 1));
    return emitFloatPanel(e, panels, first, isBf16, width, store);
  }
  Value start = e.mul(panel, shape.bytesPerPanel());
  BlockKind kind = blocks.getKind();
  if (kind == BlockKind::Int8)
    return emitInt8Panel(e, panels, start, lane, width, store);
  int64_t length = runtime::findBlockFormat(stringifyBlockKind(kind))->length;
  int64_t blockBytes = shape.bytesPerPanel() / llvm::divideCeil(width, length);
  emitBlocks(
      e, kind, width,
      [&](Value block) {
        return std::make_unique<BlockOfPanel>(e, kind, panels,
                                              e.add(start, e.mul(block, blockBytes)), lane);
      },
      store);
}

} // namespace heddle::codegen
