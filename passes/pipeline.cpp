// The pipeline as a list of stages, and the choice among its fusions.
#include "passes/pipeline.h"
#include "passes/passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace heddle::passes {

namespace {
#define GEN_PASS_REGISTRATION
#include "passes/passes.h.inc"
} // namespace

llvm::ArrayRef<Stage> stages() {
  static constexpr Stage table[] = {
      {"assign-ids", "names the operations that have no id yet", false, createAssignIds},
      {"expand-composites", "rewrites composite operations into their parts", false,
       createExpandComposites},
      {"remove-redundant", "computes once what is computed twice, and nothing that is not used",
       false, [] { return createRemoveRedundant({.keepScores = true}); }},
      {"hoist-constants",
       "what follows from weights and constants alone is computed when a model is loaded", true,
       createHoistConstants},
      {"push-selection", "rows whose results nobody asked for are dropped early", true,
       createPushSelection},
      {"fuse-attention", "the scores of attention never go to memory", true, createFuseAttention},
      {"fuse-projections",
       "queries, keys and values are one product; keys and values go straight into the cache", true,
       createFuseProjections},
      {"fuse-rotation", "angles of rotary positions are computed once for all heads and layers",
       true, createFuseRotation},
      {"fuse-gated-linear", "two products of one input and the gate between them become one pass",
       true, createFuseGatedLinear},
      {"fuse-epilogue", "bias, activation and residual are computed on the registers of a product",
       true, createFuseEpilogue},
      {"fuse-elementwise", "trees of elementwise operations become one map", true,
       createFuseElementwise},
      {"fuse-quantise", "rows of a norm are made into blocks as they are normalised", true,
       createFuseQuantise},
      {"remove-redundant", "once more, for what fusion left", false,
       [] { return createRemoveRedundant(); }},
  };
  return table;
}

const Stage *findStage(StringRef name) {
  for (const Stage &stage : stages())
    if (stage.name == name || (stage.isFusion && stage.name.split('-').second == name))
      return &stage;
  return nullptr;
}

//===-- The choice
//------------------------------------------------------------------------------===//

static uint32_t bitOf(const Stage *stage) { return uint32_t(1) << (stage - stages().begin()); }

static uint32_t bitOf(StringRef name) {
  const Stage *stage = findStage(name);
  assert(stage && stage->isFusion && "not a fusion");
  return bitOf(stage);
}

FusionSet FusionSet::all() {
  FusionSet set;
  for (const Stage &stage : stages())
    if (stage.isFusion)
      set.bits |= bitOf(&stage);
  return set;
}

FailureOr<FusionSet> FusionSet::parse(StringRef text, std::string &error, FusionSet *named) {
  auto known = [] {
    SmallVector<StringRef> names{"all", "none"};
    for (StringRef name : all().names())
      names.push_back(name);
    return llvm::join(names, ", ");
  };
  FusionSet set, byName;
  SmallVector<StringRef> items;
  text.split(items, ',');
  for (auto [place, item] : llvm::enumerate(items)) {
    item = item.trim();
    if (item == "all" && place == 0) {
      set = all();
      continue;
    }
    if (item == "none" && items.size() == 1)
      continue;
    if (item == "all" || item == "none" || (item.starts_with("-") && place == 0)) {
      error = "'" + text.str() + "' is no choice of fusions: expected all, none, NAME,... or " +
              "all,-NAME,...";
      return failure();
    }
    bool remove = item.consume_front("-");
    const Stage *stage = findStage(item);
    if (!stage || !stage->isFusion) {
      error =
          item.empty() ? "expected the name of a fusion" : "unknown fusion '" + item.str() + "'";
      error += "; the names are " + known();
      return failure();
    }
    set = remove ? set.without(stage->name) : set.with(stage->name);
    byName = remove ? byName.without(stage->name) : byName.with(stage->name);
  }
  if (named)
    named->bits = byName.bits & set.bits;
  return set;
}

bool FusionSet::has(StringRef name) const { return bits & bitOf(name); }

FusionSet FusionSet::with(StringRef name) const {
  FusionSet set = *this;
  set.bits |= bitOf(name);
  return set;
}

FusionSet FusionSet::without(StringRef name) const {
  FusionSet set = *this;
  set.bits &= ~bitOf(name);
  return set;
}

SmallVector<StringRef> FusionSet::names() const {
  SmallVector<StringRef> names;
  for (const Stage &stage : stages())
    if (bits & bitOf(&stage))
      names.push_back(stage.name);
  return names;
}

std::string FusionSet::str() const {
  if (bits == 0)
    return "none";
  SmallVector<StringRef> in = names(), everything = all().names();
  if (in.size() * 2 <= everything.size())
    return llvm::join(in, ",");
  std::string text = "all";
  for (StringRef name : everything)
    if (!has(name))
      text += ",-" + name.str();
  return text;
}

//===-- The pipeline
//----------------------------------------------------------------------------===//

/// Runs the stages, those that are fusions by the places that `fusions` gives them.
static void build(OpPassManager &manager, ArrayRef<const Stage *> fusions) {
  OpPassManager *functions = nullptr;
  auto add = [&](std::unique_ptr<Pass> pass) {
    bool ofFunctions = pass->getOpName() == func::FuncOp::getOperationName();
    if (ofFunctions && !functions)
      functions = &manager.nest<func::FuncOp>();
    (ofFunctions ? functions : &manager)->addPass(std::move(pass));
    if (!ofFunctions)
      functions = nullptr;
  };
  bool fused = false;
  for (const Stage &stage : stages()) {
    if (!stage.isFusion) {
      add(stage.create());
    } else if (!fused) {
      for (const Stage *fusion : fusions)
        add(fusion->create());
      fused = true;
    }
  }
}

void buildFusePipeline(OpPassManager &manager, FusionSet fusions) {
  SmallVector<StringRef> names = fusions.names();
  buildFusePipeline(manager, names);
}

void buildFusePipeline(OpPassManager &manager, ArrayRef<StringRef> fusions) {
  build(manager, llvm::map_to_vector(fusions, [](StringRef name) { return findStage(name); }));
}

namespace {
struct FuseOptions : PassPipelineOptions<FuseOptions> {
  Option<std::string> fuse{*this, "fuse",
                           llvm::cl::desc("Fusions to run: all, none, NAME,... or all,-NAME,..."),
                           llvm::cl::init("all")};
};
} // namespace

void registerPassesAndPipelines() {
  registerHeddlePasses();
  registerPassPipeline(
      "heddle-fuse", "From level graph to level fused",
      [](OpPassManager &manager, StringRef text,
         function_ref<LogicalResult(const Twine &)> fail) -> LogicalResult {
        FuseOptions options;
        if (failed(options.parseFromString(text)))
          return failure();
        std::string error;
        auto fusions = FusionSet::parse(options.fuse, error);
        if (failed(fusions))
          return fail(error);
        buildFusePipeline(manager, *fusions);
        return success();
      },
      [](function_ref<void(const detail::PassOptions &)> handle) { handle(FuseOptions()); });
}

} // namespace heddle::passes
