// Rows of weights in quantised blocks, as f32: for look-ups in embedding tables. The arithmetic is
// that of the codecs (runtime/quantized), so that a look-up gives their values exactly.
#include "codegen/kernels/dequantise.h"

#include "codegen/kernels/bytes.h"
#include "codegen/kernels/region.h"
#include "runtime/quantized/codec.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// The values of one block, 16 at a time.
struct BlockReader {
  Emit &e;
  BlockKind kind;
  Bytes bytes;
  Value at; ///< the block's first byte

  Value byteAt(int64_t offset) {
    return arith::ExtUIOp::create(e.b, e.loc, e.i32(),
                                  bytes.scalar(e.add(at, offset), e.b.getI8Type()));
  }
  Value half(int64_t offset) {
    return arith::ExtFOp::create(e.b, e.loc, e.f32(),
                                 bytes.scalar(e.add(at, offset), e.b.getF16Type()));
  }
  Value integer(Value value, int64_t shift, int64_t mask) {
    Type type = value.getType();
    auto constant = [&](int64_t number) { return e.filled(type, number); };
    if (shift > 0)
      value = arith::ShRUIOp::create(e.b, e.loc, value, constant(shift));
    if (shift < 0)
      value = arith::ShLIOp::create(e.b, e.loc, value, constant(-shift));
    return arith::AndIOp::create(e.b, e.loc, value, constant(mask));
  }
  Value unsignedBytes(int64_t offset) {
    return arith::ExtUIOp::create(e.b, e.loc, e.vec(e.i32()), bytes.load(e.add(at, offset), lanes));
  }
  Value scaled(Value integers, int64_t less, Value step) {
    Value values = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), integers);
    if (less)
      values = arith::SubFOp::create(e.b, e.loc, values, e.splat(double(less)));
    return arith::MulFOp::create(e.b, e.loc, values, e.broadcast(step));
  }

  /// Values [from, from + 16).
  Value read(int64_t from) {
    switch (kind) {
    case BlockKind::Q8_0:
      return arith::MulFOp::create(e.b, e.loc, bytes.signedBytes(e.add(at, 2 + from)),
                                   e.broadcast(half(0)));
    case BlockKind::Q4_0:
      return scaled(integer(unsignedBytes(2), from ? 4 : 0, 15), 8, half(0));
    case BlockKind::Q4_K:
      return readQ4K(from);
    default:
      return readQ6K(from);
    }
  }

  Value readQ4K(int64_t from) {
    int64_t part = from / 32;
    auto or_ = [&](Value a, Value b) -> Value { return arith::OrIOp::create(e.b, e.loc, a, b); };
    Value scale, minimum;
    if (part < 4) {
      scale = integer(byteAt(4 + part), 0, 63);
      minimum = integer(byteAt(8 + part), 0, 63);
    } else {
      Value lowBits = byteAt(8 + part);
      scale = or_(integer(lowBits, 0, 15), integer(byteAt(part), 2, 0x30));
      minimum = or_(integer(lowBits, 4, 15), integer(byteAt(4 + part), 2, 0x30));
    }
    auto times = [&](Value factor, Value level) -> Value {
      return arith::MulFOp::create(e.b, e.loc, factor,
                                   arith::SIToFPOp::create(e.b, e.loc, e.f32(), level));
    };
    Value nibbles = integer(unsignedBytes(16 + part / 2 * 32 + from % 32), part % 2 ? 4 : 0, 15);
    return arith::SubFOp::create(e.b, e.loc, scaled(nibbles, 0, times(half(0), scale)),
                                 e.broadcast(times(half(2), minimum)));
  }

  Value readQ6K(int64_t from) {
    int64_t half = from / 128, quarter = from % 128 / 32, inside = from % 32;
    Value low = integer(unsignedBytes(half * 64 + quarter % 2 * 32 + inside), quarter / 2 * 4, 15);
    Value high = integer(unsignedBytes(128 + half * 32 + inside), quarter * 2 - 4, 0x30);
    Value level = arith::ExtSIOp::create(e.b, e.loc, e.i32(),
                                         bytes.scalar(e.add(at, 192 + from / 16), e.b.getI8Type()));
    Value step = arith::MulFOp::create(e.b, e.loc, this->half(208),
                                       arith::SIToFPOp::create(e.b, e.loc, e.f32(), level));
    return scaled(arith::OrIOp::create(e.b, e.loc, low, high), 32, step);
  }
};

void emitInt8Row(Emit &e, Value bytes, Value start, int64_t width,
                 llvm::function_ref<void(Value, Value, Value)> store) {
  Value scale = Bytes(e, bytes).repeated(start, e.f32());
  forLanes(e, e.index(width), [&](Value column, Value mask) {
    Value at = e.add(e.add(start, 4), column);
    Value loaded = mask ? e.loadMasked(bytes, at, mask) : e.loadVector(bytes, at);
    Value wide = arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), loaded);
    Value values = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), wide);
    store(column, arith::MulFOp::create(e.b, e.loc, values, scale), mask);
  });
}

} // namespace

void emitDequantisedRow(Emit &e, BlockKind kind, Value bytes, Value start, int64_t width,
                        llvm::function_ref<void(Value, Value, Value)> store) {
  if (kind == BlockKind::Int8)
    return emitInt8Row(e, bytes, start, width, store);
  const runtime::BlockFormat &format = *runtime::findBlockFormat(stringifyBlockKind(kind));
  auto emitBlock = [&](Value block, int64_t count) {
    BlockReader reader{e, kind, Bytes(e, bytes), e.add(start, e.mul(block, format.bytes))};
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

} // namespace heddle::codegen
