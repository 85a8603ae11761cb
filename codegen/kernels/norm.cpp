// Kernels of norm: rows in two or three passes over data that stays in the nearest cache.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/quantise.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// What the normalisation of a row takes from it: (x - mean - shift) * scale.
struct Moments {
  Value mean;  ///< null for the root mean square
  Value shift; ///< what the mean is rounded by
  Value scale;
};

struct NormEmitter {
  NormOp op;
  Emit &e;
  Value input = {}, weight = {}, bias = {}, result = {};
  Value width = {};
  bool whole = false; ///< whether the width is a multiple of the lanes

  Value sub(Value a, Value b) { return arith::SubFOp::create(e.b, e.loc, a, b); }
  Value mul(Value a, Value b) { return arith::MulFOp::create(e.b, e.loc, a, b); }
  Value add(Value a, Value b) { return arith::AddFOp::create(e.b, e.loc, a, b); }
  Value div(Value a, Value b) { return arith::DivFOp::create(e.b, e.loc, a, b); }

  Value load(ArrayRef<Value> row, Value column, Value mask) {
    SmallVector<Value> at(row);
    at.push_back(column);
    // Not loadElements, which would repeat a row of width 1 in all lanes.
    return mask ? e.loadMasked(input, at, mask) : e.loadVector(input, at);
  }

  /// A value where the mask holds, 0 elsewhere.
  Value inside(Value mask, Value value) {
    if (!mask)
      return value;
    return arith::SelectOp::create(e.b, e.loc, mask, value, e.splat(0));
  }

  /// A sum over the row; each lane takes the columns that are equal to it modulo 16. `accumulate`
  /// gets a group of them, its mask and the sums so far.
  Value sums(ArrayRef<Value> row, llvm::function_ref<Value(Value, Value, Value)> accumulate) {
    Value lanesSums =
        foldLanes(e, width, whole, e.splat(0), [&](Value column, Value mask, ValueRange carried) {
          Value x = load(row, column, mask);
          return SmallVector<Value>{accumulate(x, mask, carried[0])};
        })[0];
    return e.sumLanes(lanesSums);
  }

  Value countAsFloat() { return arith::SIToFPOp::create(e.b, e.loc, e.f32(), e.toInt(width, 64)); }

  Value scaleOf(Value variance) {
    Value epsilon = e.constant(op.getEpsilon().convertToDouble());
    return div(e.constant(1), math::SqrtOp::create(e.b, e.loc, add(variance, epsilon)));
  }

  Moments rootMeanSquare(ArrayRef<Value> row) {
    Value square = sums(row, [&](Value x, Value, Value sum) { return e.fma(x, x, sum); });
    return {nullptr, nullptr, scaleOf(div(square, countAsFloat()))};
  }

  /// x around the mean.
  Value centre(Value x, const Moments &moments) {
    return sub(sub(x, e.broadcast(moments.mean)), e.broadcast(moments.shift));
  }

  /// The mean, then what it was rounded by, then the variance around both.
  Moments layer(ArrayRef<Value> row) {
    Value count = countAsFloat();
    auto meanOf = [&](llvm::function_ref<Value(Value)> term) {
      Value sum = sums(
          row, [&](Value x, Value mask, Value sum) { return add(sum, inside(mask, term(x))); });
      return div(sum, count);
    };
    Moments moments;
    moments.mean = meanOf([](Value x) { return x; });
    moments.shift = meanOf([&](Value x) { return sub(x, e.broadcast(moments.mean)); });
    Value variance = meanOf([&](Value x) {
      Value difference = centre(x, moments);
      return mul(difference, difference);
    });
    moments.scale = scaleOf(variance);
    return moments;
  }

  /// With the scale in all lanes.
  Moments moments(ArrayRef<Value> row) {
    Moments found = op.getKind() == NormKind::Rms ? rootMeanSquare(row) : layer(row);
    found.scale = e.broadcast(found.scale);
    return found;
  }

  /// The normalised entries of a row from `column` on; 0 outside of the mask, where there is one.
  Value normalized(ArrayRef<Value> row, const Moments &moments, Value column, Value mask) {
    Value x = load(row, column, mask);
    Value y = mul(moments.mean ? centre(x, moments) : x, moments.scale);
    if (weight)
      y = mul(y, loadFloats(e, weight, {column}, mask));
    if (bias)
      y = add(y, loadFloats(e, bias, {column}, mask));
    return inside(mask, y);
  }

  void storeRow(ArrayRef<Value> row) {
    Moments found = moments(row);
    forLanes(e, e.index(0), width, whole, [&](Value column, Value mask) {
      SmallVector<Value> at(row);
      at.push_back(column);
      storeElements(e, normalized(row, found, column, mask), result, at, mask);
    });
  }

  void quantiseRow(ArrayRef<Value> row, RowQuantiser &rows) {
    Moments found = moments(row);
    rows.quantise(row,
                  [&](Value column, Value mask) { return normalized(row, found, column, mask); });
  }
};

struct NormKernel : KernelOpInterface::ExternalModel<NormKernel, NormOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto norm = cast<NormOp>(op);
    ArrayRef<Size> sizes = lowering.context.dims.sizes(norm.getResult());
    KernelBuilder kernel(lowering, op, "norm");
    NormEmitter emitter{norm, kernel.emit};
    emitter.input = kernel.operand(0);
    const bool quantises = isa<BlocksType>(norm.getResult().getType().getElementType());
    if (!quantises)
      emitter.result = kernel.result();
    unsigned next = 1;
    if (norm.getWeight())
      emitter.weight = kernel.operand(next++);
    if (norm.getBias())
      emitter.bias = kernel.operand(next++);
    emitter.width = kernel.size(sizes.back());
    emitter.whole = isMultiple(sizes.back(), lanes);

    Launch launch;
    if (quantises) {
      RowQuantiser rows(kernel, norm.getResult());
      forTensorRows(kernel, launch, sizes,
                    [&](ArrayRef<Value> row) { emitter.quantiseRow(row, rows); });
    } else {
      forTensorRows(kernel, launch, sizes, [&](ArrayRef<Value> row) { emitter.storeRow(row); });
    }
    int64_t flops = norm.getKind() == NormKind::Rms ? 4 : 8;
    launch.flops = elementCount(sizes) * constantSize(flops + (quantises ? quantiseFlops : 0));
    launch.bytes = bytesOf(lowering.context, norm.getResult());
    for (Value operand : op->getOperands())
      launch.bytes = launch.bytes + bytesOf(lowering.context, operand);
    kernel.finish(std::move(launch));
    return success();
  }
};

} // namespace

void attachNormKernels(MLIRContext *context) { NormOp::attachInterface<NormKernel>(*context); }

} // namespace heddle::codegen
