// Delta debugging (Zeller and Hildebrandt, 2002) of graphs: runs of operations are taken away,
// first halves of the graph, then smaller ones, until single operations no longer can be; what read
// them reads a new argument instead.
#include "frontend/reduce.h"

#include "frontend/compiler/driver.h"
#include "ir/load.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace heddle {

namespace {

func::FuncOp forwardOf(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>(ir::forwardName);
}

Block &bodyOf(ModuleOp module) { return forwardOf(module).getBody().front(); }

/// The operations of the model, but for the return.
std::vector<Operation *> operationsOf(ModuleOp module) {
  std::vector<Operation *> operations;
  for (Operation &op : bodyOf(module).without_terminator())
    operations.push_back(&op);
  return operations;
}

std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << '\n';
  return text;
}

//===-- Changes -------------------------------------------------------------------------------===//

void eraseUnused(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>())
      op.erase();
}

/// Makes the parameter that @load has as its result `index` one that is given.
bool dropMade(ModuleOp module, size_t index) {
  func::FuncOp load = ir::loadFunction(module);
  if (!load || load.isExternal() || index >= load.getNumResults())
    return false;
  load.getBody().front().getTerminator()->eraseOperand(unsigned(index));
  return succeeded(load.eraseResult(unsigned(index)));
}

/// Takes away what nothing reads any more.
void removeUnused(ModuleOp module) {
  eraseUnused(bodyOf(module));
  if (func::FuncOp load = ir::loadFunction(module); load && !load.isExternal()) {
    llvm::StringSet<> read;
    forwardOf(module).walk([&](ir::WeightOp weight) { read.insert(weight.getParam()); });
    for (unsigned i = load.getNumResults(); i-- > 0;) {
      auto made = load.getResultAttrOfType<FlatSymbolRefAttr>(i, ir::madeParamAttrName);
      if (made && !read.contains(made.getValue()))
        dropMade(module, i);
    }
    eraseUnused(load.getBody().front());
    if (load.getNumResults() == 0)
      load.erase();
  }
  for (auto param : llvm::make_early_inc_range(module.getOps<ir::ParamOp>()))
    if (SymbolTable::symbolKnownUseEmpty(param, module))
      param.erase();
}

/// Takes the operations [begin, end) away; what others read of them becomes an argument. What they
/// alone read goes too, or, where it is to be kept, becomes a result.
bool replaceByArguments(ModuleOp module, size_t begin, size_t end, bool keep) {
  func::FuncOp function = forwardOf(module);
  std::vector<Operation *> operations = operationsOf(module);
  llvm::SetVector<mlir::Value> read;
  for (size_t i = begin; i < end; ++i)
    for (mlir::Value operand : operations[i]->getOperands())
      if (Operation *source = operand.getDefiningOp(); source && !isa<ir::WeightOp>(source))
        read.insert(operand);
  for (size_t i = end; i-- > begin;) {
    for (mlir::Value result : operations[i]->getResults()) {
      if (result.use_empty())
        continue;
      unsigned place = function.getNumArguments();
      if (failed(function.insertArgument(place, result.getType(), {}, result.getLoc())))
        return false;
      result.replaceAllUsesWith(function.getArgument(place));
    }
    for (mlir::Value result : operations[i]->getResults())
      read.remove(result);
    operations[i]->erase();
  }
  if (!keep)
    return true;
  Operation *terminator = bodyOf(module).getTerminator();
  bool kept = false;
  for (mlir::Value value : read) {
    if (!value.use_empty())
      continue;
    unsigned place = function.getNumResults();
    if (failed(function.insertResult(place, value.getType(), {})))
      return false;
    terminator->insertOperands(place, value);
    kept = true;
  }
  return kept; // without it, the same as above
}

/// Replaces results by operands of their type. `index` counts the operations of regions too.
bool replaceByOperand(ModuleOp module, size_t index) {
  std::vector<Operation *> all;
  forwardOf(module).walk([&](Operation *op) { all.push_back(op); });
  if (index >= all.size() || all[index]->use_empty())
    return false;
  for (mlir::Value result : all[index]->getResults()) {
    auto same = llvm::find_if(all[index]->getOperands(), [&](mlir::Value operand) {
      return operand.getType() == result.getType();
    });
    if (result.use_empty())
      continue;
    if (same == all[index]->operand_end())
      return false;
    result.replaceAllUsesWith(*same);
  }
  all[index]->erase();
  return true;
}

bool dropResult(ModuleOp module, size_t index) {
  func::FuncOp function = forwardOf(module);
  if (function.getNumResults() < 2 || index >= function.getNumResults())
    return false;
  bodyOf(module).getTerminator()->eraseOperand(unsigned(index));
  return succeeded(function.eraseResult(unsigned(index)));
}

bool dropArgument(ModuleOp module, size_t index) {
  func::FuncOp function = forwardOf(module);
  return index < function.getNumArguments() && function.getArgument(unsigned(index)).use_empty() &&
         succeeded(function.eraseArgument(unsigned(index)));
}

/// Makes all elements of a constant the first one.
bool makeUniform(ModuleOp module, size_t index) {
  std::vector<Operation *> operations = operationsOf(module);
  auto constant =
      index < operations.size() ? dyn_cast<ir::ConstantOp>(operations[index]) : ir::ConstantOp();
  auto values = constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : DenseElementsAttr();
  if (!values || values.isSplat() || values.empty())
    return false;
  constant.setValueAttr(
      DenseElementsAttr::get(values.getType(), *values.getValues<Attribute>().begin()));
  return true;
}

/// Drops what only people and profiles read.
bool dropNames(ModuleOp module) {
  bool changed = false;
  forwardOf(module).walk([&](Operation *op) {
    for (StringRef name : {ir::idAttrName, ir::fromAttrName})
      changed |= bool(op->removeAttr(name));
  });
  return changed;
}

//===-- The search ----------------------------------------------------------------------------===//

class Reducer {
public:
  Reducer(OwningOpRef<ModuleOp> module, const Interesting &interesting)
      : best(std::move(module)), interesting(interesting) {}

  Result<Reduced> run() {
    Reduced reduced;
    reduced.before = int64_t(operationsOf(*best).size());
    auto given = interesting(textOf(*best));
    if (!given)
      return given.error();
    if (!*given)
      return dataError(
          "the test does not hold for the graph itself, so there is nothing to reduce");
    while (!error && round()) {
    }
    if (error)
      return *error;
    reduced.text = textOf(*best);
    reduced.operations = int64_t(operationsOf(*best).size());
    reduced.tried = int64_t(tried.size());
    return reduced;
  }

private:
  /// Tries everything once; whether anything helped.
  bool round() {
    bool helped = attempt([](ModuleOp) { return true; }); // for what nothing reads
    helped |= each(&dropResult, [&] { return size_t(forwardOf(*best).getNumResults()); });
    helped |= each(&dropMade, [&] {
      func::FuncOp load = ir::loadFunction(*best);
      return load ? size_t(load.getNumResults()) : 0;
    });
    for (size_t length = operationsOf(*best).size(); length > 0; length /= 2)
      for (bool keep : {false, true})
        helped |= takeAway(length, keep);
    helped |= each(&replaceByOperand, [&] {
      size_t count = 0;
      forwardOf(*best).walk([&](Operation *) { ++count; });
      return count;
    });
    helped |= each(&dropArgument, [&] { return size_t(forwardOf(*best).getNumArguments()); });
    helped |= each(&makeUniform, [&] { return operationsOf(*best).size(); });
    return attempt(dropNames) || helped;
  }

  /// Runs of `length` operations, the last ones first: what reads nothing of them needs no
  /// argument.
  bool takeAway(size_t length, bool keep) {
    bool helped = false;
    for (size_t end = operationsOf(*best).size(); end > 0 && !error;) {
      size_t begin = end > length ? end - length : 0;
      bool done =
          attempt([&](ModuleOp module) { return replaceByArguments(module, begin, end, keep); });
      helped |= done;
      end = std::min(begin, operationsOf(*best).size());
    }
    return helped;
  }

  /// A change of one thing, for all there are, the last ones first.
  bool each(bool (*change)(ModuleOp, size_t), llvm::function_ref<size_t()> count) {
    bool helped = false;
    for (size_t i = count(); i-- > 0 && !error;) {
      helped |= attempt([&](ModuleOp module) { return change(module, i); });
      i = std::min(i, count());
    }
    return helped;
  }

  /// Keeps what `change` makes of the graph if it is another one, verifies, and is interesting.
  bool attempt(llvm::function_ref<bool(ModuleOp)> change) {
    if (error)
      return false;
    OwningOpRef<ModuleOp> candidate = best->clone();
    if (!change(*candidate))
      return false;
    removeUnused(*candidate);
    detail::CollectErrors silent(candidate->getContext());
    if (failed(verify(*candidate)))
      return false;
    std::string text = textOf(*candidate);
    if (text == textOf(*best) || !tried.insert(text).second)
      return false;
    auto answer = interesting(text);
    if (!answer)
      error = answer.error();
    if (!answer || !*answer)
      return false;
    best = std::move(candidate);
    return true;
  }

  OwningOpRef<ModuleOp> best;
  const Interesting &interesting;
  llvm::StringSet<> tried;
  std::optional<Error> error;
};

} // namespace

Result<Reduced> reduce(const ModelSource &source, const Interesting &interesting) {
  auto driver = detail::Driver::create(source, {});
  if (!driver)
    return driver.error();
  if ((*driver)->level() > Level::planned)
    return dataError(source.name() + ": is at level loops; graphs of the levels before can be "
                                     "reduced");
  return Reducer((*driver)->module().clone(), interesting).run();
}

} // namespace heddle
