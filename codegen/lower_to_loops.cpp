// lower-to-loops: the planned graph becomes kernels and a program that launches them.
#include "codegen/passes.h"

#include "codegen/check_plan.h"
#include "codegen/element_types.h"
#include "codegen/lowering.h"
#include "codegen/plan.h"
#include "ir/load.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

#include <map>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

#define GEN_PASS_DEF_LOWERTOLOOPS
#include "codegen/passes.h.inc"

namespace {

struct LowerToLoops : impl::LowerToLoopsBase<LowerToLoops> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    auto forward = module.lookupSymbol<func::FuncOp>(forwardName);
    auto isaName = module->getAttrOfType<StringAttr>(isaAttrName);
    auto phaseText = module->getAttrOfType<StringAttr>(phaseAttrName);
    std::optional<Target> target = isaName ? findTarget(isaName.getValue()) : std::nullopt;
    std::optional<Phase> phase = phaseText ? findPhase(phaseText.getValue()) : std::nullopt;
    if (!forward || !target || !phase) {
      module.emitError("needs a planned function @")
          << forwardName << ", " << isaAttrName << " and " << phaseAttrName;
      return signalPassFailure();
    }
    func::FuncOp load = loadFunction(module);
    for (auto other : module.getOps<func::FuncOp>())
      if (other != forward && other != load) {
        other.emitError("function '") << other.getName() << "' stands beside the model, @"
                                      << forwardName << ", which calls nothing";
        return signalPassFailure();
      }
    llvm::StringMap<unsigned> names;
    if (failed(checkLoad(module)) ||
        (load && failed(lower(load, loadName, *target, *phase, names))) ||
        failed(lower(forward, phaseName(*phase), *target, *phase, names)))
      return signalPassFailure();
  }

  /// A program called `name`, and its kernels, take the place of `function`.
  LogicalResult lower(func::FuncOp function, StringRef name, const Target &target, Phase phase,
                      llvm::StringMap<unsigned> &names) {
    FailureOr<DimAnalysis> dims = DimAnalysis::run(function);
    if (failed(dims) || failed(checkLayouts(function)))
      return failure();
    ViewAnalysis views(function, *dims);
    PlanContext context{target, phase, *dims, views};
    if (failed(checkPlan(function, context)))
      return failure();

    OpBuilder builder(function);
    ArrayAttr makes;
    if (name == loadName)
      makes = builder.getArrayAttr(
          llvm::map_to_vector(madeParams(getOperation()), [&](StringRef param) -> Attribute {
            return FlatSymbolRefAttr::get(builder.getContext(), param);
          }));
    auto program = ProgramOp::create(builder, function.getLoc(), name, function.getFunctionType(),
                                     builder.getStrArrayAttr({}), builder.getArrayAttr({}),
                                     builder.getArrayAttr({}), builder.getArrayAttr({}), makes);
    Lowering lowering(getOperation(), program.getBody().emplaceBlock(), context, names);
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (views.isView(&op) || isa<WeightOp, ConstantOp>(op))
        continue;
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel)
        return op.emitError("no kernel for ") << op.getName();
      if (failed(lowering.lower(kernel)))
        return failure();
    }
    describe(program, function, context);
    function.erase();
    return success();
  }

  /// Writes down dimensions, slots and results.
  void describe(ProgramOp program, func::FuncOp forward, const PlanContext &context) {
    Builder builder(program.getContext());
    ArrayRef<runtime::Dim> table = context.dims.table();
    auto text = [&](const Size &size) { return sizeText(size, table); };

    SmallVector<StringRef> names;
    std::vector<std::string> storage;
    for (const runtime::Dim &dim : table)
      storage.push_back(dimName(dim));
    for (const std::string &name : storage)
      names.push_back(name);
    program.setDimsAttr(builder.getStrArrayAttr(names));

    std::map<unsigned, std::vector<std::string>> tenants;
    auto addTenant = [&](Attribute buffer, const Size &bytes) {
      StringRef place = cast<StringAttr>(buffer).getValue();
      unsigned slot;
      if (place.consume_front("slot:") && !place.getAsInteger(10, slot)) {
        std::string size = text(bytes);
        if (!llvm::is_contained(tenants[slot], size))
          tenants[slot].push_back(size);
      }
    };
    for (Operation &op : forward.getBody().front()) {
      auto kernel = dyn_cast<KernelOpInterface>(op);
      if (!kernel || context.views.isView(&op))
        continue;
      if (auto buffers = op.getAttrOfType<ArrayAttr>(buffersAttrName))
        for (auto [result, buffer] : llvm::zip(op.getResults(), buffers))
          if (auto type = dyn_cast<RankedTensorType>(result.getType()))
            addTenant(buffer, storedBytes(context.dims.sizes(result), type.getElementType()));
      if (auto buffers = op.getAttrOfType<ArrayAttr>(temporariesAttrName))
        for (auto [bytes, buffer] : llvm::zip(kernel.temporaries(context), buffers))
          addTenant(buffer, bytes);
    }
    SmallVector<Attribute> slots;
    for (auto &[slot, sizes] : tenants) {
      slots.resize(slot + 1, builder.getStrArrayAttr({}));
      slots[slot] = builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(sizes));
    }
    program.setSlotsAttr(builder.getArrayAttr(slots));

    auto shapes = [&](ValueRange values, bool tensorsOnly) {
      SmallVector<Attribute> all;
      for (Value value : values) {
        bool isTensor = isa<RankedTensorType>(value.getType());
        if (!isTensor && tensorsOnly)
          continue;
        std::vector<std::string> shape;
        if (isTensor)
          for (const Size &size : context.dims.sizes(value))
            shape.push_back(text(size));
        all.push_back(builder.getStrArrayAttr(llvm::to_vector_of<StringRef>(shape)));
      }
      return builder.getArrayAttr(all);
    };
    program.setInputsAttr(shapes(forward.getArguments(), false));
    program.setOutputsAttr(shapes(forward.getBody().front().getTerminator()->getOperands(), true));
  }
};

} // namespace

} // namespace heddle::codegen
