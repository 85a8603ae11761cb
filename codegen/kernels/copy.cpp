// Kernels that move elements and change none: gather_heads, expand, concat, and reshape,
// merge_heads and transpose where they are no views.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/strided.h"
#include "codegen/kernels/tiles.h"
#include "codegen/kernels/transpose.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

/// A tensor with the given strides in place of its own.
Strided strided(Ref ref, const View &view, Type type, ArrayRef<Size> strides) {
  Strided result{ref, cast<RankedTensorType>(type).getElementType(), {}, view.offset};
  for (const Size &stride : strides)
    result.strides.push_back(stride);
  return result;
}
Strided operandOf(Lowering &lowering, Operation *op, unsigned index, ArrayRef<Size> strides) {
  Value value = op->getOperand(index);
  return strided({Ref::operand, index}, lowering.view(value), value.getType(), strides);
}
Strided resultOf(Lowering &lowering, Operation *op, ArrayRef<Size> strides) {
  Value value = op->getResult(0);
  return strided({Ref::result, 0}, lowering.view(value), value.getType(), strides);
}

struct GatherHeadsKernel : KernelOpInterface::ExternalModel<GatherHeadsKernel, GatherHeadsOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    // `[Hkv, group, S, d]`, the input repeated along the group.
    const View &input = lowering.view(op->getOperand(0));
    const View &result = lowering.view(op->getResult(0));
    int64_t heads = cast<GatherHeadsOp>(op).getHeads(), sources = *asConstant(input.sizes[0]);
    Size group = constantSize(sources ? heads / sources : 0);
    Size sizes[] = {input.sizes[0], group, input.sizes[1], input.sizes[2]};
    Strided from =
        operandOf(lowering, op, 0, {input.strides[0], {}, input.strides[1], input.strides[2]});
    from.strides[1] = std::nullopt;
    Strided to = resultOf(
        lowering, op,
        {result.strides[0] * group, result.strides[0], result.strides[1], result.strides[2]});
    lowerCopy(lowering, op, sizes, from, to);
    return success();
  }
};

struct MergeHeadsKernel : KernelOpInterface::ExternalModel<MergeHeadsKernel, MergeHeadsOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    const View &input = lowering.view(op->getOperand(0));
    Size row = input.sizes[0] * input.sizes[2];
    lowerCopy(lowering, op, {{input.sizes[1], input.sizes[0], input.sizes[2]}},
              operandOf(lowering, op, 0, {input.strides[1], input.strides[0], input.strides[2]}),
              resultOf(lowering, op, {row, input.sizes[2], constantSize(1)}));
    return success();
  }
};

/// The result has the order of the input and no gaps.
struct ReshapeKernel : KernelOpInterface::ExternalModel<ReshapeKernel, ReshapeOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    const View &input = lowering.view(op->getOperand(0));
    lowerCopy(lowering, op, input.sizes, operandOf(lowering, op, 0, input.strides),
              resultOf(lowering, op, rowMajor(input.sizes)));
    return success();
  }
};

struct ExpandKernel : KernelOpInterface::ExternalModel<ExpandKernel, ExpandOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    const PlanContext &context = lowering.context;
    ArrayRef<Size> sizes = context.dims.sizes(op->getResult(0));
    lowerCopy(lowering, op, sizes,
              broadcastTo(context, {Ref::operand, 0}, op->getOperand(0), sizes),
              broadcastTo(context, {Ref::result, 0}, op->getResult(0), sizes));
    return success();
  }
};

/// One phase for each input, into its part of the result.
struct ConcatKernel : KernelOpInterface::ExternalModel<ConcatKernel, ConcatOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    const View &result = lowering.view(op->getResult(0));
    int64_t axis = cast<ConcatOp>(op).getAxis();
    Strided part = resultOf(lowering, op, result.strides);
    for (unsigned i = 0; i < op->getNumOperands(); ++i) {
      const View &input = lowering.view(op->getOperand(i));
      lowerCopy(lowering, op, input.sizes, operandOf(lowering, op, i, input.strides), part);
      part.offset = part.offset + result.strides[axis] * input.sizes[axis];
    }
    return success();
  }
};

/// The last dimension of the result is not contiguous in the input: squares of 16 by 16 are read by
/// the one and written by the other, those of 32-bit elements in registers.
struct TransposeEmitter {
  Emit &e;
  Value input, result;
  ArrayRef<int64_t> permutation;
  unsigned last;  ///< dimension of the result that is contiguous there
  unsigned other; ///< the one that is contiguous in the input

  SmallVector<Value> inputPlace(ArrayRef<Value> at) {
    SmallVector<Value> from(at.size());
    for (auto [i, axis] : llvm::enumerate(permutation))
      from[axis] = at[i];
    return from;
  }

  /// A square, or what there is of it, that begins at `at`.
  void square(SmallVector<Value> at, Value lastEnd, Value otherEnd) {
    Value column = at[last], row = at[other];
    auto single = [&] {
      e.loop(row, otherEnd, 1, [&](Value i) {
        e.loop(column, lastEnd, 1, [&](Value j) {
          at[other] = i;
          at[last] = j;
          e.store(e.load(input, inputPlace(at)), result, at);
        });
      });
    };
    if (cast<MemRefType>(input.getType()).getElementTypeBitWidth() != 32)
      return single();
    auto whole = [&](Value low, Value high) {
      return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, e.sub(high, low),
                                   e.index(lanes));
    };
    Value full = arith::AndIOp::create(e.b, e.loc, whole(column, lastEnd), whole(row, otherEnd));
    auto inRegisters = [&] {
      SmallVector<Value> vectors;
      for (int64_t j = 0; j < lanes; ++j) {
        at[last] = e.add(column, j);
        vectors.push_back(e.loadVector(input, inputPlace(at)));
      }
      emitTranspose(e, vectors);
      at[last] = column;
      for (int64_t i = 0; i < lanes; ++i) {
        at[other] = e.add(row, i);
        e.storeVector(vectors[i], result, at);
      }
      at[other] = row;
    };
    e.when(full, inRegisters, single);
  }
};

struct TransposeKernel : KernelOpInterface::ExternalModel<TransposeKernel, TransposeOp> {
  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto transpose = cast<TransposeOp>(op);
    KernelBuilder kernel(lowering, op, "transpose");
    Emit &e = kernel.emit;
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    ArrayRef<Size> sizes = lowering.context.dims.sizes(transpose.getResult());
    unsigned last = sizes.size() - 1;
    unsigned other = llvm::find(permutation, int64_t(last)) - permutation.begin();
    TransposeEmitter emitter{e, kernel.operand(0), kernel.result(), permutation, last, other};

    Launch launch;
    for (auto [i, size] : llvm::enumerate(sizes))
      launch.grid.push_back({size, i == last || i == other ? squareTile : 1});
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      auto squares = [&](unsigned dim, llvm::function_ref<void(Value, Value)> body) {
        Value low = e.mul(tile[dim], squareTile);
        Value high = e.min(e.add(low, squareTile), kernel.size(sizes[dim]));
        e.loop(low, high, lanes,
               [&](Value start) { body(start, e.min(e.add(start, lanes), high)); });
      };
      squares(other, [&](Value row, Value otherEnd) {
        squares(last, [&](Value column, Value lastEnd) {
          SmallVector<Value> at(tile);
          at[other] = row;
          at[last] = column;
          emitter.square(at, lastEnd, otherEnd);
        });
      });
    });
    launch.bytes = bytesOf(lowering.context, op->getResult(0)) * constantSize(2);
    kernel.finish(std::move(launch));
    return success();
  }

  static constexpr int64_t squareTile = 64;
};

} // namespace

void attachCopyKernels(MLIRContext *context) {
  GatherHeadsOp::attachInterface<GatherHeadsKernel>(*context);
  MergeHeadsOp::attachInterface<MergeHeadsKernel>(*context);
  ReshapeOp::attachInterface<ReshapeKernel>(*context);
  ExpandOp::attachInterface<ExpandKernel>(*context);
  ConcatOp::attachInterface<ConcatKernel>(*context);
  TransposeOp::attachInterface<TransposeKernel>(*context);
}

} // namespace heddle::codegen
