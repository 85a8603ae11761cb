// Whether the attributes of a text are those that Heddle knows.
#include "frontend/compiler/check_attributes.h"

#include "codegen/kernel_contract.h"
#include "codegen/plan.h"
#include "codegen/view.h"
#include "frontend/compiler/driver.h"
#include "ir/ops.h"
#include "passes/declined.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace heddle::detail {

namespace {

/// Where an attribute stands.
enum class Place { module, function, argument, result, program, operation };

llvm::StringRef nameOf(Place place) {
  static constexpr llvm::StringLiteral names[] = {"a module", "a function", "an argument",
                                                  "a result", "a program",  "an operation"};
  return names[size_t(place)];
}

/// An attribute in our name that somebody reads, and what it holds.
struct Known {
  llvm::StringRef name;
  Place place;
  llvm::StringRef holds;
  bool (*fits)(Attribute);
  Level from = Level::graph; ///< the first level that has it
};

bool isNames(Attribute value) {
  auto names = dyn_cast<ArrayAttr>(value);
  return names && llvm::all_of(names, llvm::IsaPred<StringAttr>);
}

bool isList(Attribute value) { return isa<ArrayAttr>(value); }
bool isDictionary(Attribute value) { return isa<DictionaryAttr>(value); }
bool isUnit(Attribute value) { return isa<UnitAttr>(value); }
bool isText(Attribute value) { return isa<StringAttr>(value); }
bool isSymbol(Attribute value) { return isa<FlatSymbolRefAttr>(value); }
/// Who reads it says more of what it should be.
bool isAnything(Attribute) { return true; }

constexpr Known table[] = {
    {ir::contextAttrName, Place::module, "", isAnything},
    {codegen::isaAttrName, Place::module, "", isAnything, Level::planned},
    {codegen::phaseAttrName, Place::module, "", isAnything, Level::planned},
    {passes::declinedAttrName, Place::function, "a list of fusions", isList},
    {codegen::contractAttrName, Place::function, "", isAnything, Level::loops},
    {ir::nameAttrName, Place::argument, "a name in quotes", isText},
    {codegen::takesAttrName, Place::argument, "", isAnything, Level::loops},
    {ir::madeParamAttrName, Place::result, "a parameter, @name", isSymbol},
    {ir::argumentsAttrName, Place::program, "", isAnything},
    {ir::idAttrName, Place::operation, "a name in quotes", isText},
    {ir::fromAttrName, Place::operation, "a list of names in quotes", isNames},
    {codegen::rowsLayoutAttrName, Place::operation, "nothing but its name", isUnit, Level::planned},
    {codegen::joinedAttrName, Place::operation, "nothing but its name", isUnit, Level::planned},
    {codegen::kernelAttrName, Place::operation, "a dictionary", isDictionary, Level::planned},
    {codegen::buffersAttrName, Place::operation, "", isAnything, Level::planned},
    {codegen::temporariesAttrName, Place::operation, "", isAnything, Level::planned},
};

/// What is wrong with `attribute` in text of `level`; empty where nothing is.
std::string faultOf(NamedAttribute attribute, Place place, Level level) {
  llvm::StringRef name = attribute.getName();
  std::string nearest;
  unsigned least = unsigned(name.size()) / 4; // farther away, it is another word
  for (const Known &known : table) {
    if (known.place == place && known.name == name) {
      if (level < known.from)
        return ("'" + name + "' belongs to level " + levelName(known.from) +
                "; this text is at level " + levelName(level) +
                (known.from == Level::planned ? ", since its module has no heddle.phase" : ""))
            .str();
      return known.fits(attribute.getValue()) ? "" : ("'" + name + "' holds " + known.holds).str();
    }
    if (unsigned distance = name.edit_distance(known.name);
        known.place == place && distance < least) {
      least = distance;
      nearest = known.name;
    }
  }
  std::string fault = "no attribute '" + name.str() + "' is known of " + nameOf(place).str();
  return nearest.empty() ? fault : fault + "; the nearest is '" + nearest + "'";
}

class AttributeChecker {
public:
  explicit AttributeChecker(Level level) : level(level) {}

  Status run(ModuleOp module) {
    module.walk([&](Operation *op) {
      check(op);
      return status ? WalkResult::advance() : WalkResult::interrupt();
    });
    return status;
  }

private:
  void fail(Operation *op, const std::string &what) {
    if (status)
      status = dataError(placeOf(op->getLoc()) + what);
  }

  void checkOurs(Operation *op, llvm::ArrayRef<NamedAttribute> attributes, Place place) {
    for (NamedAttribute attribute : attributes)
      if (attribute.getName().getValue().starts_with("heddle."))
        if (std::string fault = faultOf(attribute, place, level); !fault.empty())
          fail(op, fault);
  }

  void check(Operation *op) {
    const bool isOurs = isa_and_nonnull<ir::HeddleDialect>(op->getDialect());
    for (NamedAttribute attribute : op->getDiscardableAttrs())
      if (llvm::StringRef name = attribute.getName(); isOurs && !name.contains('.'))
        fail(op,
             "'" + op->getName().getStringRef().str() + "' has no attribute '" + name.str() + "'");
    const Place place = isa<ModuleOp>(op)              ? Place::module
                        : isa<FunctionOpInterface>(op) ? Place::function
                        : isa<ir::ProgramOp>(op)       ? Place::program
                                                       : Place::operation;
    SmallVector<NamedAttribute> own(op->getDiscardableAttrs());
    checkOurs(op, own, place);
    auto function = dyn_cast<FunctionOpInterface>(op);
    if (!function)
      return;
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      checkOurs(op, function.getArgAttrs(i), Place::argument);
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      checkOurs(op, function.getResultAttrs(i), Place::result);
    checkIds(function);
  }

  /// Remarks, costs and times name operations by their ids.
  void checkIds(FunctionOpInterface function) {
    llvm::StringMap<Operation *> owners;
    function->walk([&](Operation *op) {
      auto id = op->getAttrOfType<StringAttr>(ir::idAttrName);
      if (!id)
        return;
      auto [owner, isNew] = owners.try_emplace(id.getValue(), op);
      if (!isNew)
        fail(op, "two operations have the id '" + id.str() + "'; the other is at " +
                     llvm::StringRef(placeOf(owner->second->getLoc())).rtrim(": ").str());
    });
  }

  Level level;
  Status status;
};

} // namespace

Status checkAttributes(ModuleOp module) { return AttributeChecker(levelOf(module)).run(module); }

} // namespace heddle::detail
