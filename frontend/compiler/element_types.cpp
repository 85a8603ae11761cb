// The rule which weights follow the chosen element type: those that are read by products and
// look-ups, where the bytes are. Norms and biases are few and stay f32.
#include "frontend/compiler/element_types.h"

#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace heddle::detail {

/// Whether `use` reads a weight as a table or as the right side of a product.
static bool readsInBulk(OpOperand &use) {
  return llvm::TypeSwitch<Operation *, bool>(use.getOwner())
      .Case([&](ir::MatmulOp op) { return use.get() != op.getLhs(); })
      .Case([&](ir::EmbedOp) { return true; })
      .Case([&](ir::GatedMlpOp op) { return use.get() != op.getInput(); })
      .Case([&](ir::LinearOp op) { return use.get() == op.getWeight(); })
      .Case([&](ir::GatedLinearOp op) {
        return use.get() == op.getGate() || use.get() == op.getUp();
      })
      .Default(false);
}

static Type withElement(Type type, Type element) {
  auto cache = dyn_cast<ir::CacheType>(type);
  if (!cache)
    return type;
  return ir::CacheType::get(type.getContext(), cache.getLayers(), cache.getHeads(),
                            cache.getKeyWidth(), cache.getValueWidth(), element);
}

/// Takes the result types of every operation from its operands again.
static LogicalResult inferAgain(func::FuncOp function) {
  auto visited = function.walk([&](InferTypeOpInterface op) {
    SmallVector<Type> types;
    if (failed(op.inferReturnTypes(op->getContext(), op->getLoc(), op->getOperands(),
                                   op->getAttrDictionary(), op->getPropertiesStorage(),
                                   op->getRegions(), types)))
      return WalkResult::interrupt();
    for (auto [result, type] : llvm::zip_equal(op->getResults(), types))
      result.setType(type);
    return WalkResult::advance();
  });
  return failure(visited.wasInterrupted());
}

static LogicalResult setCacheElement(func::FuncOp function, Type element) {
  for (BlockArgument argument : function.getArguments())
    argument.setType(withElement(argument.getType(), element));
  if (failed(inferAgain(function)))
    return failure();
  FunctionType type = function.getFunctionType();
  auto results = llvm::map_to_vector(type.getResults(),
                                     [&](Type result) { return withElement(result, element); });
  function.setType(
      FunctionType::get(function.getContext(), function.getBody().getArgumentTypes(), results));
  return success();
}

LogicalResult setWeightElement(ModuleOp module, Type element) {
  Type f32 = Float32Type::get(module.getContext());
  llvm::DenseMap<StringAttr, SmallVector<ir::WeightOp>> uses;
  module.walk([&](ir::WeightOp op) { uses[op.getParamAttr().getAttr()].push_back(op); });
  for (auto param : module.getOps<ir::ParamOp>()) {
    auto &weights = uses[param.getSymNameAttr()];
    bool bulk = !weights.empty() && llvm::all_of(weights, [](ir::WeightOp weight) {
      return llvm::all_of(weight->getUses(), readsInBulk);
    });
    auto type = cast<RankedTensorType>(param.getType()).clone(bulk ? element : f32);
    param.setType(type);
    for (ir::WeightOp weight : weights)
      weight.getResult().setType(cast<RankedTensorType>(type));
  }
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(setCacheElement(function, element)))
      return failure();
  return success();
}

} // namespace heddle::detail
