// The lists of `heddle list`, from what is registered.
#include "frontend/explain.h"

#include "codegen/interfaces.h"
#include "codegen/passes.h"
#include "frontend/compiler/dialects.h"
#include "frontend/compiler/driver.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

#include <mutex>

using namespace mlir;

namespace heddle {

//===-- Passes --------------------------------------------------------------------------------===//

static void registerOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    passes::registerPassesAndPipelines();
    codegen::registerHeddleCodegenPasses();
  });
}

std::vector<CatalogEntry> listPasses() {
  registerOnce();
  std::vector<CatalogEntry> entries;
  auto choices = detail::choose({.fuse = "all", .isa = "avx2"});
  if (!choices)
    return entries;
  for (const detail::LevelStage &stage : detail::levelStages()) {
    OpPassManager manager(ModuleOp::getOperationName());
    stage.addPasses(manager, *choices);
    std::string text;
    llvm::raw_string_ostream stream(text);
    manager.printAsTextualPipeline(stream);
    llvm::SmallVector<llvm::StringRef> words;
    llvm::SplitString(text, words, "(),{}");
    for (llvm::StringRef word : words) {
      const PassInfo *pass = PassInfo::lookup(word);
      if (!pass)
        continue; // the name of an operation or an option
      const passes::Stage *fusion = passes::findStage(word);
      entries.push_back({word.str(), fusion && fusion->isFusion ? "fusion" : stage.name.str(),
                         pass->getPassDescription().str()});
    }
  }
  return entries;
}

std::vector<CatalogEntry> listFusions() {
  std::vector<CatalogEntry> entries;
  for (const passes::Stage &stage : passes::stages())
    if (stage.isFusion)
      entries.push_back({stage.name.str(), "fusion", stage.summary.str()});
  return entries;
}

//===-- Operations ----------------------------------------------------------------------------===//

/// Name, level and summary of each operation, written by TableGen's documentation.
static constexpr const char *operationTable[][3] = {
#include "frontend/compiler/operations.inc"
};

std::vector<CatalogEntry> listOperations() {
  std::vector<CatalogEntry> entries;
  for (const auto &[name, level, summary] : operationTable)
    entries.push_back({name, level, summary});
  return entries;
}

std::vector<CatalogEntry> listKernels() {
  DialectRegistry registry;
  registerAllHeddleDialects(registry);
  codegen::registerKernels(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadAllAvailableDialects();
  std::vector<CatalogEntry> entries;
  for (const CatalogEntry &operation : listOperations()) {
    auto name = RegisteredOperationName::lookup(operation.name, &context);
    if (name && name->hasInterface<codegen::KernelOpInterface>())
      entries.push_back(operation);
  }
  return entries;
}

} // namespace heddle
