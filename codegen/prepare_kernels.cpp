// prepare-kernels: from the graph to the operations that have kernels.
#include "codegen/passes.h"

#include "codegen/dims.h"
#include "codegen/element_types.h"
#include "ir/scalar_ops.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

#define GEN_PASS_DEF_PREPAREKERNELS
#include "codegen/passes.h.inc"

namespace {

/// Names the operation that takes the place of `from`.
void takeName(Operation *from, Operation *to) {
  for (StringRef name : {idAttrName, fromAttrName})
    if (Attribute attribute = from->getAttr(name))
      to->setAttr(name, attribute);
}

/// A map over `inputs` whose element `body` computes.
MapOp buildMap(OpBuilder &builder, Location loc, Type type, ValueRange inputs,
               llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto map = MapOp::create(builder, loc, type, inputs);
  OpBuilder::InsertionGuard guard(builder);
  Block *block = builder.createBlock(&map.getBody());
  for (Value input : inputs)
    block->addArgument(cast<RankedTensorType>(input.getType()).getElementType(), loc);
  builder.setInsertionPointToStart(block);
  YieldOp::create(builder, loc, ValueRange{body(builder, block->getArguments())});
  return map;
}

void elementwiseToMap(Operation *op) {
  OpBuilder builder(op);
  MapOp map =
      buildMap(builder, op->getLoc(), op->getResult(0).getType(), op->getOperands(),
               [&](OpBuilder &b, ValueRange scalars) { return buildElement(b, op, scalars); });
  takeName(op, map);
  op->replaceAllUsesWith(map);
  op->erase();
}

/// Makes a region that passes a product on.
void passOn(Region &region, Location loc) {
  OpBuilder builder(region.getContext());
  Block *block = builder.createBlock(&region);
  block->addArgument(builder.getF32Type(), loc);
  YieldOp::create(builder, loc, block->getArguments());
}

/// A product with a weight is a linear without an epilogue.
void matmulToLinear(MatmulOp op) {
  OpBuilder builder(op);
  auto linear = LinearOp::create(builder, op.getLoc(), op.getType(), op.getLhs(), op.getRhs(),
                                 ValueRange{}, op.getTransposeRhs());
  takeName(op, linear);
  passOn(linear.getBody(), op.getLoc());
  op.replaceAllUsesWith(linear.getResult());
  op.erase();
}

void expertMatmulToLinear(ExpertMatmulOp op) {
  OpBuilder builder(op);
  auto linear = ExpertLinearOp::create(builder, op.getLoc(), op.getType(), op.getInput(),
                                       op.getWeight(), op.getIds(), ValueRange{});
  takeName(op, linear);
  passOn(linear.getBody(), op.getLoc());
  op.replaceAllUsesWith(linear.getResult());
  op.erase();
}

/// Matrices of experts are read as panels, which are made of parameters alone.
static LogicalResult checkExperts(Block &body) {
  for (Operation &op : body) {
    SmallVector<Value> weights;
    if (auto product = dyn_cast<ExpertMatmulOp>(op))
      weights = {product.getWeight()};
    else if (auto linear = dyn_cast<ExpertLinearOp>(op))
      weights = llvm::to_vector(linear.getWeights());
    for (Value weight : weights)
      if (!weight.getDefiningOp<WeightOp>())
        return op.emitOpError(
            "needs a parameter as its weight, found a computed tensor; what follows from weights "
            "alone becomes one by the fusion hoist-constants");
  }
  return success();
}

struct PrepareKernels : impl::PrepareKernelsBase<PrepareKernels> {
  void runOnOperation() override {
    if (failed(checkBody(getOperation())))
      return signalPassFailure();
    conversions.clear();
    roundingOps.clear();
    Block &body = getOperation().getBody().front();
    if (failed(checkExperts(body)))
      return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (isElementwise(&op))
        elementwiseToMap(&op);
      else if (auto product = dyn_cast<ExpertMatmulOp>(op))
        expertMatmulToLinear(product);
      else if (auto matmul = dyn_cast<MatmulOp>(op); matmul &&
                                                     matmul.getRhs().getDefiningOp<WeightOp>() &&
                                                     matmul.getRhs().getType().getRank() == 2)
        matmulToLinear(matmul);
    }
    for (Operation &op : body)
      if (isa<LinearOp, GatedLinearOp, ExpertLinearOp, MatmulOp, ProjectHeadsOp>(op))
        convertInput(&op);
    for (MapOp rounding : roundingOps)
      sinkRounding(rounding);
    ownResults(body);
  }

  /// Products take both sides in one type, that of the right one: with bf16 weights the input is
  /// rounded, once for all of them; a bf16 input of f32 weights is widened.
  void convertInput(Operation *op) {
    Value input = op->getOperand(0);
    Type weight = cast<RankedTensorType>(op->getOperand(1).getType()).getElementType();
    auto type = cast<RankedTensorType>(input.getType());
    if (auto blocks = dyn_cast<BlocksType>(weight))
      return quantiseInput(op, blocks);
    if (weight == type.getElementType())
      return;
    Value &converted = conversions[{input, weight}];
    if (!converted) {
      OpBuilder builder(op);
      MapOp map = buildMap(builder, op->getLoc(), type.clone(weight), input,
                           [&](OpBuilder &b, ValueRange scalars) {
                             return buildCast(b, op->getLoc(), scalars[0], weight);
                           });
      nameAfter(input, map, weight.isBF16() ? ".rounded" : ".widened");
      converted = map;
      if (weight.isBF16())
        roundingOps.push_back(map);
    }
    op->setOperand(0, converted);
  }

  /// Weights in blocks take an input in blocks, quantised once for all that share it.
  void quantiseInput(Operation *op, BlocksType weight) {
    Value input = op->getOperand(0);
    auto type = cast<RankedTensorType>(input.getType());
    OpBuilder builder(op);
    if (type.getElementType().isBF16()) {
      Value &wide = conversions[{input, builder.getF32Type()}];
      if (!wide) {
        wide = buildMap(builder, op->getLoc(), type.clone(builder.getF32Type()), input,
                        [&](OpBuilder &b, ValueRange scalars) {
                          return buildCast(b, op->getLoc(), scalars[0], b.getF32Type());
                        });
        nameAfter(input, wide.getDefiningOp(), ".widened");
      }
      input = wide;
    }
    BlocksType rows = weight.rowsFor();
    if (rows == type.getElementType())
      return;
    Value &converted = conversions[{input, rows}];
    if (!converted) {
      converted = QuantiseOp::create(builder, op->getLoc(), type.clone(rows), input);
      nameAfter(input, converted.getDefiningOp(), ".quantised" + Twine(rowBlocks(rows).length));
    }
    op->setOperand(0, converted);
  }

  /// Names `made`, a conversion of `value`, after where that comes from.
  void nameAfter(Value value, Operation *made, const Twine &what) {
    Operation *source = value.getDefiningOp();
    if (auto id = source ? source->getAttrOfType<StringAttr>(idAttrName) : StringAttr())
      made->setAttr(idAttrName, StringAttr::get(made->getContext(), id.getValue() + what));
  }

  /// A value that is only read rounded is stored rounded: no phase of its own, half the bytes.
  void sinkRounding(MapOp rounding) {
    Value value = rounding.getInputs()[0];
    SmallVector<Value> chain = {value};
    while (auto merge = value.getDefiningOp<MergeHeadsOp>())
      chain.push_back(value = merge.getInput());
    Operation *source = value.getDefiningOp();
    bool onlyRounded = llvm::all_of(chain, [](Value each) { return each.hasOneUse(); });
    if (!onlyRounded ||
        !isa_and_nonnull<LinearOp, GatedLinearOp, ExpertLinearOp, MapOp, NormOp, AttentionOp>(
            source))
      return;
    Type rounded = rounding.getType().getElementType();
    if (isa<LinearOp, GatedLinearOp, ExpertLinearOp, MapOp>(source)) {
      Operation *yield = source->getRegion(0).front().getTerminator();
      OpBuilder builder(yield);
      yield->setOperand(0, buildCast(builder, yield->getLoc(), yield->getOperand(0), rounded));
    }
    for (Value each : chain)
      each.setType(cast<RankedTensorType>(each.getType()).clone(rounded));
    rounding.getResult().replaceAllUsesWith(chain.front());
    rounding.erase();
  }

  /// A result that is an argument, a weight, a constant, a view, or returned twice, is copied.
  void ownResults(Block &body) {
    Operation *end = body.getTerminator();
    llvm::SmallPtrSet<Value, 4> seen;
    for (OpOperand &use : end->getOpOperands()) {
      Value value = use.get();
      if (!isa<RankedTensorType>(value.getType()))
        continue;
      Operation *source = value.getDefiningOp();
      bool owned = source && !isa<WeightOp, ConstantOp, CacheAppendOp, SplitHeadsOp, MergeHeadsOp,
                                  TransposeOp, ReshapeOp, SliceOp>(source);
      if (owned && seen.insert(value).second)
        continue;
      OpBuilder builder(end);
      MapOp map = buildMap(builder, end->getLoc(), value.getType(), value,
                           [](OpBuilder &, ValueRange scalars) { return scalars[0]; });
      map->setAttr(idAttrName, builder.getStringAttr("result." + Twine(use.getOperandNumber())));
      use.set(map);
    }
  }

  llvm::DenseMap<std::pair<Value, Type>, Value> conversions;
  SmallVector<MapOp> roundingOps;
};

} // namespace

} // namespace heddle::codegen
