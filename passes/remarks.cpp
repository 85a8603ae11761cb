#include "passes/remarks.h"

#include "ir/dialect.h"
#include "passes/provenance.h"

#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <mutex>

using namespace mlir;

namespace heddle::passes {

//===-- Saying
//----------------------------------------------------------------------------------===//

static constexpr StringLiteral category = "fusion";

/// The engine filters and prints by these.
static remark::RemarkOpts optionsFor(StringRef pass, Operation *op) {
  auto options = remark::RemarkOpts::name(pass).category(category);
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    return options.function(function.getName());
  return options;
}

void remarkFired(StringRef pass, Operation *op, StringRef shape) {
  if (!op->getContext()->getRemarkEngine())
    return;
  auto remark = remark::passed(op->getLoc(), optionsFor(pass, op));
  remark << remark::detail::Remark::Arg("Id", idOf(op));
  if (auto from = op->getAttrOfType<ArrayAttr>(ir::fromAttrName)) {
    auto ids =
        llvm::map_range(from.getAsRange<StringAttr>(), [](StringAttr id) { return id.getValue(); });
    remark << remark::detail::Remark::Arg("From", llvm::join(ids, ", "));
  }
  if (!shape.empty())
    remark << remark::detail::Remark::Arg("Shape", shape);
}

void remarkDeclined(StringRef pass, Operation *op, StringRef shape, StringRef why) {
  if (!op->getContext()->getRemarkEngine())
    return;
  remark::missed(op->getLoc(), optionsFor(pass, op))
      << remark::detail::Remark::Arg("Id", idOf(op)) << remark::detail::Remark::Arg("Shape", shape)
      << remark::detail::Remark::Arg("Declined", why);
}

void remarkMissed(StringRef pass, Operation *op, const Twine &reason, const Twine &remedy) {
  if (!op->getContext()->getRemarkEngine())
    return;
  auto remark = remark::missed(op->getLoc(), optionsFor(pass, op));
  remark << remark::detail::Remark::Arg("Id", idOf(op))
         << remark::detail::Remark::Arg("Reason", reason.str())
         << remark::detail::Remark::Arg("Remedy", remedy.str());
}

//===-- Collecting
//------------------------------------------------------------------------------===//

/// Adds `file:line` for every place in `location`.
static void addPlaces(Location location, std::vector<std::string> &places) {
  location->walk([&](Location part) {
    if (auto place = dyn_cast<FileLineColLoc>(part)) {
      std::string text = (place.getFilename().getValue() + ":" + Twine(place.getLine())).str();
      if (!llvm::is_contained(places, text))
        places.push_back(text);
    }
    return WalkResult::advance();
  });
}

namespace {

/// Turns what the engine streams back into the fields that were put in.
class Collector : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Collector(std::vector<FusionRemark> &remarks) : remarks(remarks) {}

  void streamOptimizationRemark(const remark::detail::Remark &remark) override {
    if (remark.getCategoryName() != category)
      return;
    FusionRemark entry;
    entry.pass = remark.getRemarkName().str();
    entry.fired = remark.getRemarkType() == llvm::remarks::Type::Passed;
    for (const auto &argument : remark.getArgs()) {
      if (argument.key == "Id")
        entry.id = argument.val;
      else if (argument.key == "Reason")
        entry.reason = argument.val;
      else if (argument.key == "Remedy")
        entry.remedy = argument.val;
      else if (argument.key == "Shape")
        entry.shape = argument.val;
      else if (argument.key == "Declined")
        entry.declined = argument.val;
      else if (argument.key == "From")
        for (StringRef id : llvm::split(StringRef(argument.val), ", "))
          entry.from.push_back(id.str());
    }
    addPlaces(remark.getLocation(), entry.places);
    std::lock_guard lock(mutex);
    remarks.push_back(std::move(entry));
  }

private:
  std::vector<FusionRemark> &remarks;
  std::mutex mutex;
};

} // namespace

RemarkCollector::RemarkCollector(MLIRContext &context) : context(context) {
  remark::RemarkCategories everything;
  everything.passed = everything.missed = category.str();
  LogicalResult enabled = remark::enableOptimizationRemarks(
      context, std::make_unique<Collector>(collected),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), everything);
  assert(succeeded(enabled) && "only a streamer that writes files can fail");
  (void)enabled;
}

RemarkCollector::~RemarkCollector() { context.setRemarkEngine(nullptr); }

} // namespace heddle::passes
