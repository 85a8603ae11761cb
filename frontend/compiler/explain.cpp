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

/// Fuses `driver`'s graph for `phase` and hears what is said.
static Result<std::vector<passes::FusionRemark>> hear(detail::Driver &driver, Phase phase) {
  passes::RemarkCollector collector(*driver.module().getContext());
  if (Status status = driver.lower(Level::fused, phase); !status)
    return status.error();
  return collector.remarks();
}

static FusionEvent eventOf(const passes::FusionRemark &remark, llvm::StringRef where) {
  return {.fusion = remark.pass,
          .fired = remark.fired,
          .shape = remark.shape,
          .declined = remark.declined.empty() ? "" : (where + remark.declined).str(),
          .id = remark.id,
          .from = remark.from,
          .reason = remark.reason,
          .remedy = remark.remedy,
          .places = remark.places};
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
  const std::string bound = std::to_string(detail::decodeTokens((*driver)->choices(), options));
  if (!(*driver)->fusesAlike()) {
    // What decoding does as prefill does is told once.
    std::unique_ptr<detail::Driver> decode = (*driver)->clone();
    auto remarks = hear(*decode, Phase::decode);
    if (!remarks)
      return remarks.error();
    for (const passes::FusionRemark &remark : *remarks)
      if (!remark.declined.empty())
        explanation.events.push_back(eventOf(remark, "of up to " + bound + " tokens: "));
  }
  auto remarks = hear(**driver, Phase::prefill);
  if (!remarks)
    return remarks.error();
  for (const passes::FusionRemark &remark : *remarks)
    explanation.events.push_back(eventOf(remark, "of more than " + bound + " tokens: "));
  auto model = (*driver)->module().lookupSymbol<func::FuncOp>(ir::forwardName);
  model.walk([&](Operation *op) {
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
