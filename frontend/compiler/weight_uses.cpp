// What a module says of its parameters: their shapes, and what is made of them.
#include "frontend/compiler/driver.h"

#include "codegen/element_types.h"
#include "ir/load.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace heddle::detail {

namespace {

/// Finds the products that weights are the right side of.
class Depths {
public:
  explicit Depths(runtime::WeightStore &weights) : weights(weights) {}

  void read(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<ir::MatmulOp, ir::LinearOp>(
            [&](auto product) { note(product->getOperand(1), product.getTransposeRhs()); })
        .Case([&](ir::GatedLinearOp gated) {
          note(gated.getGate(), gated.getTransposeRhs());
          note(gated.getUp(), gated.getTransposeRhs());
        })
        .Case([&](ir::ProjectHeadsOp project) {
          for (mlir::Value weight :
               {project.getQueryWeight(), project.getKeyWeight(), project.getValueWeight()})
            note(weight, project.getTransposeRhs());
        })
        .Case([&](ir::GatedMlpOp mlp) {
          for (mlir::Value weight : {mlp.getGate(), mlp.getUp(), mlp.getDown()})
            note(weight, mlp.getTransposeWeights());
        })
        .Case([&](ir::LaunchOp launch) {
          for (Attribute operand : launch.getOperands())
            if (auto param = dyn_cast<DictionaryAttr>(operand))
              note(param);
        });
  }

private:
  /// A weight of a graph.
  void note(mlir::Value value, bool transposed) {
    if (auto weight = value.getDefiningOp<ir::WeightOp>())
      note(weight.getParam(), weight.getType(), transposed);
  }

  /// A parameter in panels, as the programs of level loops name it.
  void note(DictionaryAttr operand) {
    auto param = operand.getAs<FlatSymbolRefAttr>("param");
    auto type = operand.getAs<TypeAttr>("type");
    auto layout = operand.getAs<StringAttr>("layout");
    auto transposed = operand.getAs<BoolAttr>("transposed");
    if (param && type && layout && layout.getValue() == "panels")
      note(param.getValue(), type.getValue(), transposed && transposed.getValue());
  }

  void note(llvm::StringRef name, Type type, bool transposed) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (tensor && tensor.getRank() == 2)
      weights.setSpread(name.str(),
                        runtime::Spread::ofProduct(tensor.getDimSize(transposed ? 1 : 0)));
  }

  runtime::WeightStore &weights;
};

} // namespace

void noteSpreads(ModuleOp module, runtime::WeightStore &weights) {
  Depths depths(weights);
  module.walk([&](Operation *op) { depths.read(op); });
}

Status checkWeights(ModuleOp module, const runtime::WeightStore &weights) {
  std::string first;
  bool isMissing = false; // the first; one that is there tells more: its sizes
  int64_t declared = 0;
  SmallVector<std::string> wrong;
  SmallVector<llvm::StringRef> made = ir::madeParams(module);
  for (auto param : module.getOps<ir::ParamOp>()) {
    if (llvm::is_contained(made, param.getSymName()))
      continue;
    ++declared;
    const std::string name = param.getSymName().str();
    auto type = cast<RankedTensorType>(param.getType());
    ElementType element = *codegen::elementTypeOf(type.getElementType());
    auto reader = weights.reader(name, element, type.getShape());
    if (reader)
      continue;
    const bool isThere = weights.find(name) != nullptr;
    if (wrong.empty() || (isMissing && isThere)) {
      first = placeOf(param.getLoc()) + reader.error().message;
      isMissing = !isThere;
    }
    wrong.push_back(name);
  }
  if (wrong.empty())
    return {};
  const auto count = int64_t(wrong.size());
  if (count > 1 && count == declared)
    first += "; none of the " + std::to_string(declared) + " parameters of the model fit";
  else if (count > 1) {
    constexpr size_t named = 6;
    first += "; " + std::to_string(count) + " of the " + std::to_string(declared) +
             " parameters of the model do not fit: " +
             llvm::join(llvm::ArrayRef(wrong).take_front(named), ", ") +
             (wrong.size() > named ? ", ..." : "");
  }
  return dataError(std::move(first));
}

} // namespace heddle::detail
