// Runs the fusions with an ear to their remarks.
#include "frontend/explain.h"

#include "frontend/compiler/driver.h"
#include "ir/dialect.h"
#include "passes/remarks.h"

using namespace mlir;

namespace heddle {

static std::vector<std::string> idsIn(ArrayAttr list) {
  std::vector<std::string> ids;
  for (auto id : list.getAsRange<StringAttr>())
    ids.push_back(id.str());
  return ids;
}

Result<Explanation> explain(const ModelSource &source, const CompileOptions &options) {
  auto driver = detail::Driver::create(source, options);
  if (!driver)
    return driver.error();
  if ((*driver)->level() != Level::graph)
    return dataError(source.name() + ": is at level " +
                     detail::levelName((*driver)->level()).str() +
                     "; only a graph can be fused, and compared with itself unfused");
  Explanation explanation;
  for (llvm::StringRef name : (*driver)->choices().fusions.names())
    explanation.fusions.push_back(name.str());
  passes::RemarkCollector collector(*(*driver)->module().getContext());
  if (Status status = (*driver)->lower(Level::fused, Phase::prefill); !status)
    return status.error();
  for (const passes::FusionRemark &remark : collector.remarks())
    explanation.events.push_back({remark.pass, remark.fired, remark.id, remark.from, remark.reason,
                                  remark.remedy, remark.places});
  (*driver)->module().walk([&](Operation *op) {
    auto id = op->getAttrOfType<StringAttr>(ir::idAttrName);
    if (!id)
      return;
    auto from = op->getAttrOfType<ArrayAttr>(ir::fromAttrName);
    explanation.operations.push_back({id.str(), op->getName().getStringRef().str(),
                                      from ? idsIn(from) : std::vector<std::string>{id.str()}});
  });
  return explanation;
}

} // namespace heddle
