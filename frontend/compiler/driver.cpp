// Stages and errors of a compilation.
#include "frontend/compiler/driver.h"

#include "codegen/element_types.h"
#include "codegen/jit/machine.h"
#include "codegen/kernel_code.h"
#include "codegen/passes.h"
#include "codegen/plan.h"
#include "frontend/compiler/check_attributes.h"
#include "frontend/compiler/dialects.h"
#include "frontend/compiler/element_types.h"
#include "ir/load.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;

namespace heddle::detail {

//===-- The stages ----------------------------------------------------------------------------===//

llvm::ArrayRef<LevelStage> levelStages() {
  static constexpr LevelStage table[] = {
      {"fuse", Level::graph, Level::fused,
       [](OpPassManager &passes, const Choices &choices) {
         passes::buildFusePipeline(passes, choices.fusions);
       }},
      {"plan", Level::fused, Level::planned,
       [](OpPassManager &passes, const Choices &) { codegen::addPlanPasses(passes); }},
      {"lower", Level::planned, Level::loops,
       [](OpPassManager &passes, const Choices &) { codegen::addLoopPasses(passes); }},
  };
  return table;
}

llvm::StringRef levelName(Level level) {
  static constexpr llvm::StringLiteral names[] = {"graph", "fused", "planned",
                                                  "loops", "llvm",  "assembly"};
  return names[size_t(level)];
}

Level levelOf(ModuleOp module) {
  if (!module.getOps<ir::ProgramOp>().empty())
    return Level::loops;
  if (module->hasAttr(codegen::phaseAttrName))
    return Level::planned;
  bool fused =
      module
          .walk([](Operation *op) {
            return isa<ir::MapOp, ir::LinearOp, ir::GatedLinearOp, ir::ExpertLinearOp,
                       ir::AttentionOp, ir::RotaryTableOp, ir::TurnOp, ir::ProjectHeadsOp>(op)
                       ? WalkResult::interrupt()
                       : WalkResult::advance();
          })
          .wasInterrupted();
  return fused || ir::loadFunction(module) ? Level::fused : Level::graph;
}

std::optional<Phase> phaseOf(ModuleOp module) {
  auto of = [](llvm::StringRef name) {
    return name == ir::decodeName ? Phase::decode : Phase::prefill;
  };
  for (auto program : module.getOps<ir::ProgramOp>())
    if (!program.isLoad())
      return of(program.getSymName());
  if (auto text = module->getAttrOfType<StringAttr>(codegen::phaseAttrName))
    return of(text.getValue());
  return std::nullopt;
}

//===-- Errors --------------------------------------------------------------------------------===//

std::string placeOf(Location location) {
  std::string text;
  location->walk([&](Location part) {
    auto place = dyn_cast<FileLineColLoc>(part);
    if (!place)
      return WalkResult::advance();
    text = place.getFilename().getValue().str();
    if (place.getLine() > 0) // of a module that the text leaves out there is no line
      text += ":" + std::to_string(place.getLine());
    text += ": ";
    return WalkResult::interrupt();
  });
  return text;
}

/// What MLIR says of a text, without the names that its own source has for things.
static std::string inPlainWords(std::string text) {
  llvm::StringRef rest(text);
  // "expected ::heddle::ir::NormKind to be one of: rms, layer"
  if (auto [before, after] = rest.split(" to be one of: "); before.starts_with("expected ::"))
    return ("expected one of " + after).str();
  // "failed to parse Heddle_Cache parameter 'layers' which is to be a `int64_t`"
  if (rest.consume_front("failed to parse ") && rest.contains(" which is to be a "))
    return "cannot read " + rest.split(" parameter ").second.split(" which is to be").first.str();
  // "Dialect `foo' not found for custom op 'foo.bar'", "custom op 'foo.bar' is unknown (tried ...)"
  if (auto [before, after] = rest.split("not found for custom op "); before.starts_with("Dialect "))
    return after.trim().str() + " is no operation that heddle knows";
  if (rest.consume_front("custom op ") && rest.contains(" is unknown"))
    return rest.split(" is unknown").first.str() + " is no operation that heddle knows";
  llvm::replace(text, '\n', ' ');
  return text;
}

CollectErrors::CollectErrors(MLIRContext *context)
    : handler(context, [this](Diagnostic &diagnostic) {
        std::string added = inPlainWords(diagnostic.str());
        std::string place = placeOf(diagnostic.getLocation());
        // What MLIR adds once a pass has failed says nothing more, and of errors about one line
        // the first says what is wrong: the others follow from it.
        bool follows = llvm::StringRef(added).starts_with("Failures have been detected") ||
                       (!errors.empty() && place == lastPlace);
        if (diagnostic.getSeverity() == DiagnosticSeverity::Error && !follows) {
          errors += errors.empty() ? "" : "\n";
          errors += place + added;
          lastPlace = place;
        }
        return success();
      }) {}

//===-- The driver ----------------------------------------------------------------------------===//

/// A context for one compilation.
static std::shared_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllHeddleDialects(registry);
  codegen::registerKernels(registry);
  auto context = std::make_shared<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

/// Whether the model takes and gives what a program can. Where a type is refused, that is said of
/// the line of the function, because programs are made of it.
static Status checkInterface(func::FuncOp forward) {
  auto wrong = [&](const llvm::Twine &what) {
    return dataError(placeOf(forward.getLoc()) + what.str());
  };
  auto named = [](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isIntOrFloat() &&
           codegen::elementTypeOf(tensor.getElementType());
  };
  constexpr llvm::StringLiteral needed = "; needs ranked tensors of f32, bf16, f64, i32 or i1";
  Type cache;
  for (Type type : forward.getArgumentTypes()) {
    const bool isCache = isa<ir::CacheType>(type);
    if (isCache && cache)
      return wrong("the model takes two caches; needs one, which can have all layers of both");
    if (isCache)
      cache = type;
    else if (!isa<ir::SequencesType>(type) && !isTensor(type))
      return wrong("the model takes an argument of type " + named(type) + needed +
                   ", !heddle.sequences, and one !heddle.cache at most");
  }
  for (Type type : forward.getResultTypes()) {
    if (isTensor(type))
      continue;
    if (!cache || type != cache)
      return wrong("the model gives a result of type " + named(type) + needed +
                   ", or the cache that it takes, once");
    cache = nullptr;
  }
  return {};
}

/// Whether a cache that the model gives has all that it appends: programs append in place, so that
/// it will.
static Status checkCacheOf(func::FuncOp forward) {
  int64_t appends = 0, given = 0;
  forward.walk([&](ir::CacheAppendInterface) { ++appends; });
  auto result = forward.isExternal() ? func::ReturnOp()
                                     : dyn_cast<func::ReturnOp>(forward.front().getTerminator());
  for (mlir::Value value : result ? ValueRange(result.getOperands()) : ValueRange()) {
    if (!isa<ir::CacheType>(value.getType()))
      continue;
    while (auto append = value.getDefiningOp<ir::CacheAppendInterface>()) {
      value = append.getCache();
      ++given;
    }
    if (given != appends)
      return dataError(placeOf(result.getLoc()) + "the cache that the model gives has " +
                       std::to_string(given) + " of its " + std::to_string(appends) +
                       " appends; needs the result of the last one, each of which takes that of "
                       "the one before");
  }
  return {};
}

/// Whether the programs of level loops are for the phase that the module says.
static Status checkPhase(ModuleOp module, codegen::Phase said) {
  for (auto program : module.getOps<ir::ProgramOp>()) {
    const bool isDecode = program.getSymName() == ir::decodeName;
    if (!program.isLoad() && isDecode != (said == codegen::Phase::decode))
      return dataError(placeOf(program.getLoc()) + "program '" + program.getSymName().str() +
                       "' stands in a module whose heddle.phase is " +
                       (isDecode ? "prefill" : "decode") + "; they must say one phase");
  }
  return {};
}

/// Whether what `options` say can still be done to text of this level.
static Status checkApplies(Level level, const ModelSource &source, const CompileOptions &options) {
  auto refuse = [&](const char *option, const char *what) {
    return usageError(source.name() + ": is at level " + levelName(level).str() + ", where " +
                      option + " comes too late: " + what);
  };
  if (options.fuse && level >= Level::fused)
    return refuse("--fuse", "it is fused");
  if (options.plan && !options.plan->isUsual() && level >= Level::fused)
    return refuse("--plan", "what it would decline is fused");
  if (options.dtype && level >= Level::planned)
    return refuse("--dtype", "its types are planned with");
  if (options.kv && level >= Level::planned)
    return refuse("--kv", "its cache is planned with");
  if (options.isa && level >= Level::planned)
    return refuse("--isa", "it is planned for a processor");
  return {};
}

Result<std::unique_ptr<Driver>> Driver::create(const ModelSource &source,
                                               const CompileOptions &options) {
  if (!source.text())
    return source.text().error();
  auto chosen = choose(options);
  if (!chosen)
    return chosen.error();
  std::unique_ptr<Driver> driver(new Driver(*chosen));
  driver->context = makeContext();
  CollectErrors errors(driver->context.get());
  driver->main = parseSourceString<ModuleOp>(*source.text(), driver->context.get(), source.name());
  if (!driver->main)
    return dataError(errors.text());
  driver->current = levelOf(*driver->main);
  if (driver->current < Level::loops && !driver->main->lookupSymbol<func::FuncOp>(ir::forwardName))
    return dataError(placeOf(driver->main->getLoc()) +
                     "the module needs a function @forward: it is the model");

  for (auto function : driver->main->getOps<func::FuncOp>())
    if (driver->current < Level::loops && function.getName() != ir::forwardName &&
        function.getName() != ir::loadName)
      return dataError(placeOf(function.getLoc()) + "function '" + function.getName().str() +
                       "' stands beside the model, @forward, which calls nothing");
  if (driver->current < Level::loops && failed(ir::checkLoad(*driver->main)))
    return dataError(errors.text());
  if (driver->current < Level::loops) {
    auto forward = driver->main->lookupSymbol<func::FuncOp>(ir::forwardName);
    for (auto *check : {checkInterface, checkCacheOf})
      if (Status takes = check(forward); !takes)
        return takes.error();
  }
  if (Status known = checkAttributes(*driver->main); !known)
    return known.error();
  for (auto param : driver->main->getOps<ir::ParamOp>())
    if (ir::isReserved(param.getSymName()))
      return dataError(placeOf(param.getLoc()) + "parameter '" + param.getSymName().str() +
                       "' has a name that functions and programs of models have; it needs another");
  driver->readPlanned = driver->current == Level::planned;
  if (Status applies = checkApplies(driver->current, source, options); !applies)
    return applies.error();
  if (Attribute phase = (*driver->main)->getAttr(codegen::phaseAttrName)) {
    auto text = dyn_cast<StringAttr>(phase);
    if (!text || !codegen::findPhase(text.getValue())) {
      driver->main->emitError(codegen::phaseAttrName)
          << " is " << phase << ", not prefill or decode";
      return dataError(errors.text());
    }
    if (driver->current == Level::loops)
      if (Status same = checkPhase(*driver->main, *codegen::findPhase(text.getValue())); !same)
        return same.error();
  }
  if (driver->current >= Level::planned) {
    Attribute isa = (*driver->main)->getAttr(codegen::isaAttrName);
    auto name = dyn_cast_or_null<StringAttr>(isa);
    if (isa && !name) {
      driver->main->emitError(codegen::isaAttrName) << " is " << isa << ", not the name of a set";
      return dataError(errors.text());
    }
    auto target = codegen::selectTarget(name ? name.getValue() : llvm::StringRef("native"));
    if (!target)
      return dataError(source.name() +
                       ": is planned for another processor: " + target.error().message);
    driver->chosen.target = *target;
    if (driver->current == Level::loops && failed(codegen::checkLoops(*driver->main, *target)))
      return dataError(errors.text());
    return driver;
  }
  if (options.dtype) {
    if (!weightElement(driver->context.get(), options.dtype->element))
      return usageError("dtype: weights are f32, bf16 or in a quantised format");
    if (failed(setWeightElement(*driver->main, *options.dtype)))
      return dataError(errors.text());
  }
  if (options.kv) {
    auto model = driver->main->lookupSymbol<func::FuncOp>(ir::forwardName);
    if (llvm::none_of(model.getArgumentTypes(), llvm::IsaPred<ir::CacheType>))
      return usageError("--kv: the model keeps no KV cache");
    if (failed(setCacheElement(model, *options.kv)))
      return dataError(errors.text());
  }
  return driver;
}

bool Driver::fusesAlike() const {
  return chosen.declined(Phase::prefill).empty() && chosen.declined(Phase::decode).empty();
}

std::unique_ptr<Driver> Driver::clone() {
  std::unique_ptr<Driver> copy(new Driver(chosen));
  copy->context = context;
  copy->main = main->clone();
  copy->current = current;
  copy->readPlanned = readPlanned;
  return copy;
}

void Driver::dropLoad() {
  if (func::FuncOp load = ir::loadFunction(*main); load && current < Level::loops)
    load.erase();
}

Status Driver::lower(Level level, Phase phase) {
  if (level < current)
    return usageError("the model is at level " + levelName(current).str() + ", " +
                      levelName(level).str() + " lies above it");
  for (const LevelStage &stage : levelStages()) {
    if (stage.from < current || stage.to > level)
      continue;
    auto forward = main->lookupSymbol<func::FuncOp>(ir::forwardName);
    if (stage.from == Level::graph)
      if (auto declined = chosen.declined(phase); !declined.empty())
        passes::setDeclined(forward, declined);
    if (stage.from == Level::fused)
      codegen::setTarget(*main, chosen.target,
                         phase == Phase::decode ? codegen::Phase::decode : codegen::Phase::prefill);
    Signature signature;
    if (stage.to == Level::loops)
      if (Status status = readSignature(*main, signature); !status)
        return status;
    if (Status status = run(stage); !status)
      return status;
    if (stage.to == Level::loops)
      keepSignature(*main, signature);
    if (stage.to == Level::fused)
      passes::keepEffective(forward);
    current = stage.to;
  }
  return {};
}

Status Driver::run(const LevelStage &stage) {
  CollectErrors errors(context.get());
  llvm::SmallString<128> reproducer;
  llvm::sys::fs::getPotentiallyUniqueTempFileName("heddle-" + stage.name, "mlir", reproducer);
  PassManager passes(context.get());
  passes.enableVerifier(true);
  passes.enableCrashReproducerGeneration(reproducer);
  stage.addPasses(passes, chosen);
  if (succeeded(passes.run(*main)))
    return {};
  // Planning may refuse a graph, and lowering a plan that somebody edited. Nothing else refuses.
  // "A signal" is what MLIR says where it kept a pass from ending the process.
  bool refused = !errors.text().empty() &&
                 !llvm::StringRef(errors.text()).contains("A signal was caught") &&
                 (stage.to == Level::planned ? succeeded(verify(*main))
                                             : stage.to == Level::loops && readPlanned);
  if (refused) {
    llvm::sys::fs::remove(reproducer); // the user has the text
    return dataError(errors.text());
  }
  Error error = internalError("stage '" + stage.name.str() + "' failed: " + errors.text());
  if (llvm::sys::fs::exists(reproducer))
    error.message += "\nto reproduce it: heddle opt --run-reproducer " + reproducer.str().str();
  return error;
}

} // namespace heddle::detail
