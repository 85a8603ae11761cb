// What a graph, or the text of one, says of itself: for `heddle inspect` of a model without files.
#include "frontend/inspect.h"

#include "codegen/element_types.h"
#include "frontend/compiler/driver.h"
#include "ir/load.h"
#include "runtime/text.h"

namespace heddle {

/// "2 layers, 4 heads, keys 16 and values 16 wide, f32".
static std::string describe(ir::CacheType cache) {
  std::string element;
  llvm::raw_string_ostream(element) << cache.getElement();
  if (auto type = codegen::elementTypeOf(cache.getElement()))
    element = runtime::typeName(*type);
  return counted(cache.getLayers(), "layer") + ", " + counted(cache.getHeads(), "head") +
         ", keys " + std::to_string(cache.getKeyWidth()) + " and values " +
         std::to_string(cache.getValueWidth()) + " wide, " + element;
}

Result<Inspection> inspectGraph(const ModelSource &source, const CompileOptions &options) {
  auto driver = detail::Driver::create(source, options);
  if (!driver)
    return driver.error();
  mlir::ModuleOp module = (*driver)->module();
  detail::Signature signature;
  if (Status status = detail::readSignature(module, signature); !status)
    return status.error();

  Inspection result;
  result.path = source.name();
  result.format = "a model at level " + detail::levelName((*driver)->level()).str();
  result.runs = signature.whyNotSessions.empty();
  if (!result.runs)
    result.remarks.push_back(signature.whyNotSessions);
  auto fact = [&](const char *name, const std::string &value) {
    result.model.push_back({name, value});
  };
  if (!signature.name.empty())
    fact("graph", signature.name);
  if (signature.words)
    fact("vocabulary", std::to_string(signature.words));
  if (signature.context)
    fact("context", std::to_string(signature.context));
  if (signature.longest)
    fact("positions", "a table of " + std::to_string(signature.longest));
  if (signature.cache)
    fact("cache", describe(mlir::cast<ir::CacheType>(signature.cache)));

  llvm::SmallVector<llvm::StringRef> made = ir::madeParams(module);
  for (auto param : module.getOps<ir::ParamOp>()) {
    auto type = mlir::cast<mlir::RankedTensorType>(param.getType());
    runtime::ParamUse use{.name = param.getSymName().str(),
                          .type = *codegen::elementTypeOf(type.getElementType()),
                          .shape = type.getShape().vec()};
    bool isMade = llvm::is_contained(made, param.getSymName());
    result.tensors.push_back({.name = use.name,
                              .type = std::string(runtime::typeName(use.type)),
                              .shape = use.shape,
                              .bytes = uint64_t(runtime::preparedBytes(use)),
                              .use = isMade ? "computed from others at loading" : ""});
    result.parameters += isMade ? 0 : type.getNumElements();
  }
  return result;
}

} // namespace heddle
