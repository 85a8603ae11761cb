// The one place that joins the passes and the code generator: a model's way from text to code as a
// table of stages, each from one level to the next.
#pragma once

#include "codegen/compile.h"
#include "frontend/choice_table.h"
#include "frontend/model.h"
#include "passes/declined.h"
#include "passes/pipeline.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace heddle::detail {

/// What the options of a compilation come to.
struct Choices {
  passes::FusionSet fusions;
  passes::FusionSet forced; ///< those of them that were asked for by name
  codegen::Target target;
  std::shared_ptr<const ChoiceTable> table; ///< null: the built-in one

  /// What measurement declines in the program of `phase`.
  std::vector<passes::Declined> declined(Phase phase) const;
};

/// Reads `fuse`, `isa` and `plan`. Errors: as for `show`.
Result<Choices> choose(const CompileOptions &options);

/// The tokens of a call up to which it runs the decode program.
int64_t decodeTokens(const Choices &choices, const CompileOptions &options);

/// A stage of the way down: the passes that lead from one level to the next.
struct LevelStage {
  llvm::StringLiteral name;
  Level from, to;
  void (*addPasses)(mlir::OpPassManager &, const Choices &);
};

/// The stages in order: the table of contents.
llvm::ArrayRef<LevelStage> levelStages();

/// "graph", "fused", ...
llvm::StringRef levelName(Level level);

/// A module on its way down, in a context of its own.
class Driver {
public:
  /// Reads the source's text and applies `dtype`. Errors (data): those of the graph; what does not
  /// parse or verify, with its place; a text without the function @forward.
  static Result<std::unique_ptr<Driver>> create(const ModelSource &source,
                                                const CompileOptions &options);

  mlir::ModuleOp module() { return *main; }

  /// The level the module is at.
  Level level() const { return current; }
  const Choices &choices() const { return chosen; }

  /// Whether both programs are fused alike.
  bool fusesAlike() const;

  /// Fuses by this choice from here on.
  void setFusions(passes::FusionSet fusions) { chosen.fusions = fusions; }

  /// Runs the stages down to `level` (loops at most) for `phase`. The verifier runs after every
  /// pass. Errors: data where planning refuses a graph or lowering a plan that was read, else
  /// internal, which names a file with the module that the pass failed on.
  Status lower(Level level, Phase phase);

  /// Takes the function @load out, which the program of the other phase has too.
  void dropLoad();

  /// The same module once more, at the level reached.
  std::unique_ptr<Driver> clone();

private:
  explicit Driver(const Choices &chosen) : chosen(chosen) {}
  Status run(const LevelStage &stage);

  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> main;
  Level current = Level::graph;
  bool readPlanned = false; ///< the plan is not ours but was read
  Choices chosen;
};

/// The level a module is at, told by what it holds.
Level levelOf(mlir::ModuleOp module);

/// The phase that a module is planned for, or its program is of; none above level planned.
std::optional<Phase> phaseOf(mlir::ModuleOp module);

/// What a module, at any level down to loops, says of the model's arguments and results.
struct Signature {
  std::string name;
  std::vector<ModelInput> inputs;
  size_t mainInput = 0;       ///< the ids whose rows are cached, or wanted; none: inputs.size()
  int64_t words = 0;          ///< logits of a row
  int64_t context = 0;        ///< as the module says; 0: it does not
  int64_t longest = 0;        ///< rows of the table of positions; 0: there is none
  bool looksAhead = false;    ///< whether a row sees keys of later positions
  mlir::Type cache;           ///< of the KV cache; null: there is none
  std::string whyNotSessions; ///< empty where sessions can drive it
};
Status readSignature(mlir::ModuleOp module, Signature &signature);
/// Writes down, at level loops, what a signature read before says and the programs do not.
void keepSignature(mlir::ModuleOp module, const Signature &signature);

/// Tells `weights` what made-up values are to be like: those of a product sum over its depth.
void noteSpreads(mlir::ModuleOp module, runtime::WeightStore &weights);

/// Whether `weights` have every parameter that the module declares, in its shape. The error names
/// one that differs, or else is missing, with the place that asks for it, and how many there are.
Status checkWeights(mlir::ModuleOp module, const runtime::WeightStore &weights);

/// The way of `compile` without the weights: what is compiled, or found, is thrown away.
Result<ModelInfo> compileCode(const ModelSource &source, const CompileOptions &options);

/// The text of `graph` with the places of its calls in it.
Result<std::string> textWithPlaces(const Graph &graph);

/// "file:line: " of `location`; empty where it is unknown.
std::string placeOf(mlir::Location location);

/// Collects the errors that MLIR reports while it lives, one a line: for a line of the text (or of
/// the program that built it) the first.
class CollectErrors {
public:
  explicit CollectErrors(mlir::MLIRContext *context);
  const std::string &text() const { return errors; }

private:
  std::string errors, lastPlace;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace heddle::detail
