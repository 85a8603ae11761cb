// The rule which weights follow the chosen element type: those that are read by products and
// look-ups, where the bytes are. Norms and biases are few and stay f32, and so do the weights that
// choose experts: an error there does not change a score a little, it takes another expert.
#include "frontend/compiler/element_types.h"

#include "frontend/weight_mix.h"
#include "ir/load.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
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
      .Case([&](ir::ExpertMatmulOp op) { return use.get() == op.getWeight(); })
      .Case([&](ir::ExpertLinearOp op) { return llvm::is_contained(op.getWeights(), use.get()); })
      .Case([&](ir::ProjectHeadsOp op) {
        return llvm::is_contained({op.getQueryWeight(), op.getKeyWeight(), op.getValueWeight()},
                                  use.get());
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

/// Gives the results of `append` the types that its cache asks for.
static void setViews(ir::CacheAppendInterface append) {
  auto cache = cast<ir::CacheType>(append.getCache().getType());
  append.getNewCache().setType(cache);
  for (mlir::Value view : {append.getAllKeys(), append.getAllValues()})
    view.setType(cast<RankedTensorType>(view.getType()).clone(cache.getViewElement()));
}

/// Takes the result types of every operation from its operands again.
static LogicalResult inferAgain(func::FuncOp function) {
  auto visited = function.walk([&](Operation *each) {
    if (auto append = dyn_cast<ir::CacheAppendInterface>(each))
      setViews(append);
    auto op = dyn_cast<InferTypeOpInterface>(each);
    if (!op)
      return WalkResult::advance();
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

static LogicalResult setCacheType(func::FuncOp function, Type element) {
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

LogicalResult setCacheElement(func::FuncOp function, CacheElement element) {
  MLIRContext *context = function.getContext();
  switch (element) {
  case CacheElement::f32:
    return setCacheType(function, Float32Type::get(context));
  case CacheElement::bf16:
    return setCacheType(function, BFloat16Type::get(context));
  case CacheElement::f16:
    return setCacheType(function, Float16Type::get(context));
  case CacheElement::int8:
    return setCacheType(function, ir::BlocksType::get(context, ir::BlockKind::Int8));
  }
  llvm_unreachable("every element is handled");
}

Type weightElement(MLIRContext *context, ElementType element) {
  auto blocks = [&](ir::BlockKind kind) { return ir::BlocksType::get(context, kind); };
  switch (element) {
  case ElementType::f32:
    return Float32Type::get(context);
  case ElementType::bf16:
    return BFloat16Type::get(context);
  case ElementType::q8_0:
    return blocks(ir::BlockKind::Q8_0);
  case ElementType::q4_0:
    return blocks(ir::BlockKind::Q4_0);
  case ElementType::q4_k:
    return blocks(ir::BlockKind::Q4_K);
  case ElementType::q6_k:
    return blocks(ir::BlockKind::Q6_K);
  case ElementType::int8:
    return blocks(ir::BlockKind::Int8);
  case ElementType::i32:
  case ElementType::i1:
  case ElementType::f64:
    return {};
  }
  llvm_unreachable("every element type is handled");
}

namespace {

/// Which type the weights of a mix get.
class Mix {
public:
  Mix(ModuleOp module, WeightType type)
      : type(type), element(weightElement(module.getContext(), type.element)),
        finer(weightElement(module.getContext(), ElementType::q6_k)) {
    for (auto param : module.getOps<ir::ParamOp>())
      if (auto layer = layerOf(param.getSymName()))
        layers = std::max(layers, *layer + 1);
  }

  Type of(ir::ParamOp param, ArrayRef<ir::WeightOp> uses) const {
    bool output = llvm::any_of(
        uses, [](ir::WeightOp weight) { return llvm::any_of(weight->getUsers(), leadsToResult); });
    return isFiner(type, param.getSymName(), output, layers) ? finer : element;
  }

private:
  /// Whether the product `op` is a result of the model, or becomes one element by element.
  static bool leadsToResult(Operation *op) {
    if (isa<ir::EmbedOp>(op))
      return false;
    while (op->hasOneUse()) {
      Operation *user = *op->getUsers().begin();
      if (isa<func::ReturnOp>(user))
        return true;
      if (!isa<ir::BinaryOp, ir::UnaryOp, ir::CastOp, ir::MapOp>(user))
        return false;
      op = user;
    }
    return false;
  }

  WeightType type;
  Type element, finer;
  int64_t layers = 0;
};

} // namespace

/// Whether `use` says which experts rows go through.
static bool isChoice(OpOperand &use) {
  if (auto op = dyn_cast<ir::ExpertMatmulOp>(use.getOwner()))
    return use.get() == op.getIds();
  auto op = dyn_cast<ir::ExpertLinearOp>(use.getOwner());
  return op && use.get() == op.getIds();
}

/// Whether which experts are chosen follows from `scores`: they lead there through a choice, and
/// through what is done to each entry. A product on the way belongs to it where all it reads is for
/// the choice; else it is the model that goes on.
static bool choosesExperts(mlir::Value scores, llvm::DenseSet<mlir::Value> &seen) {
  if (!seen.insert(scores).second)
    return false;
  for (OpOperand &use : scores.getUses()) {
    if (isChoice(use))
      return true;
    Operation *user = use.getOwner();
    bool isProduct = isa<ir::MatmulOp, ir::LinearOp>(user) && use.getOperandNumber() == 0;
    bool goesOn =
        isa<ir::TopKOp, ir::SoftmaxOp, ir::BinaryOp, ir::UnaryOp, ir::SelectOp, ir::MapOp,
            ir::CastOp, ir::ReduceOp, ir::ReshapeOp, ir::ExpandOp, ir::ConcatOp, ir::SliceOp>(user);
    if (goesOn || (isProduct && scores.hasOneUse()))
      for (mlir::Value result : user->getResults())
        if (choosesExperts(result, seen))
          return true;
  }
  return false;
}

static bool isProductThatChooses(Operation *op) {
  llvm::DenseSet<mlir::Value> seen;
  return isa<ir::MatmulOp, ir::LinearOp>(op) && choosesExperts(op->getResult(0), seen);
}

/// Blocks run along k: a product takes them transposed.
static LogicalResult checkBlocks(ir::ParamOp param, ArrayRef<ir::WeightOp> weights) {
  for (ir::WeightOp weight : weights)
    for (Operation *user : weight->getUsers())
      if (!isa<ir::EmbedOp, ir::ExpertMatmulOp, ir::ExpertLinearOp>(user) &&
          !user->hasAttr("transpose_rhs") && !user->hasAttr("transpose_weights"))
        return param.emitError("weight '")
               << param.getSymName()
               << "' is [K, N], and the blocks of quantised formats run along k: "
               << "it needs to be [N, K], in a product with transpose_rhs";
  return success();
}

static bool isReadAtLoad(ir::WeightOp weight) {
  auto function = weight->getParentOfType<func::FuncOp>();
  return function && function.getName() == ir::loadName;
}

LogicalResult setWeightElement(ModuleOp module, WeightType weightType,
                               const llvm::StringMap<ElementType> &single) {
  MLIRContext *context = module.getContext();
  Type f32 = Float32Type::get(context);
  bool isNarrow = weightType.element != ElementType::f32;
  Mix mix(module, weightType);
  llvm::DenseMap<StringAttr, SmallVector<ir::WeightOp>> uses;
  module.walk([&](ir::WeightOp op) { uses[op.getParamAttr().getAttr()].push_back(op); });
  SmallVector<llvm::StringRef> made = ir::madeParams(module);
  for (auto param : module.getOps<ir::ParamOp>()) {
    auto &weights = uses[param.getSymNameAttr()];
    // What is computed when the model is loaded has the type that it is computed in, from weights
    // of the types they have.
    if (llvm::is_contained(made, param.getSymName()) || llvm::any_of(weights, isReadAtLoad))
      continue;
    bool bulk = !weights.empty() && llvm::all_of(weights, [](ir::WeightOp weight) {
      return llvm::all_of(weight->getUses(), readsInBulk) &&
             llvm::none_of(weight->getUsers(), isProductThatChooses);
    });
    Type element = bulk ? mix.of(param, weights) : f32;
    if (auto own = single.find(param.getSymName()); bulk && own != single.end())
      if (element = weightElement(context, own->second); !element)
        return param.emitError("weight '")
               << param.getSymName() << "': weights are f32, bf16 or in a quantised format";
    isNarrow |= element != f32;
    if (isa<ir::BlocksType>(element) && failed(checkBlocks(param, weights)))
      return failure();
    auto type = cast<RankedTensorType>(param.getType()).clone(element);
    param.setType(type);
    for (ir::WeightOp weight : weights)
      weight.getResult().setType(cast<RankedTensorType>(type));
  }
  Type cache = isNarrow ? Type(BFloat16Type::get(context)) : f32;
  for (auto function : module.getOps<func::FuncOp>())
    if (failed(setCacheType(function, cache)))
      return failure();
  return success();
}

} // namespace heddle::detail
