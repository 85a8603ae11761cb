#include "ir/load.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::ir {

bool isReserved(StringRef name) {
  return llvm::is_contained({forwardName, loadName, prefillName, decodeName}, name);
}

func::FuncOp loadFunction(ModuleOp module) { return module.lookupSymbol<func::FuncOp>(loadName); }

static FlatSymbolRefAttr madeBy(func::FuncOp load, unsigned result) {
  return load.getResultAttrOfType<FlatSymbolRefAttr>(result, madeParamAttrName);
}

SmallVector<StringRef> madeParams(ModuleOp module) {
  SmallVector<StringRef> names;
  if (func::FuncOp load = loadFunction(module))
    for (unsigned i = 0; i < load.getNumResults(); ++i)
      if (FlatSymbolRefAttr name = madeBy(load, i))
        names.push_back(name.getValue());
  for (auto program : module.getOps<ProgramOp>())
    if (program.isLoad() && program.getMakes())
      for (auto name : program.getMakes()->getAsRange<FlatSymbolRefAttr>())
        names.push_back(name.getValue());
  return names;
}

LogicalResult checkMade(Operation *op, const SymbolTable &symbols, FlatSymbolRefAttr name,
                        Type type) {
  auto param = name ? symbols.lookup<ParamOp>(name.getValue()) : ParamOp();
  if (!param)
    return op->emitError("@") << loadName << " makes " << Attribute(name)
                              << ", which no heddle.param declares";
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (param.getType() != type || !tensor || isa<BlocksType>(tensor.getElementType()))
    return op->emitError("@") << loadName << " makes '" << name.getValue() << "' as " << type
                              << ", but it is declared as " << param.getType();
  return success();
}

LogicalResult checkDistinct(Operation *op, ArrayRef<FlatSymbolRefAttr> names) {
  llvm::SmallDenseSet<StringRef> seen;
  for (FlatSymbolRefAttr name : names)
    if (!seen.insert(name.getValue()).second)
      return op->emitError("@") << loadName << " makes '" << name.getValue() << "' twice";
  return success();
}

LogicalResult checkLoad(ModuleOp module) {
  func::FuncOp load = loadFunction(module);
  if (!load)
    return success();
  if (load.isExternal() || load.getNumArguments() != 0)
    return load.emitError("function '")
           << loadName << "' is run when the model is loaded: it needs a body and no arguments";
  SymbolTable symbols(module);
  SmallVector<FlatSymbolRefAttr> names;
  for (auto [i, type] : llvm::enumerate(load.getResultTypes())) {
    names.push_back(madeBy(load, i));
    if (!names.back())
      return load.emitError("function '")
             << loadName << "' needs a parameter in " << madeParamAttrName << " for result " << i;
    if (failed(checkMade(load, symbols, names.back(), type)))
      return failure();
  }
  auto walked = load.walk([&](WeightOp weight) {
    if (!llvm::is_contained(names, weight.getParamAttr()))
      return WalkResult::advance();
    weight.emitError("function '")
        << loadName << "' reads '" << weight.getParam() << "', which it makes";
    return WalkResult::interrupt();
  });
  return failure(walked.wasInterrupted() || failed(checkDistinct(load, names)));
}

} // namespace heddle::ir
