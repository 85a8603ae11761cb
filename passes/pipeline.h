// The way from level graph to level fused: a list of named stages, and the choice among those that
// are fusions.
#pragma once

#include "mlir/Pass/Pass.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <memory>
#include <string>

namespace mlir {
class OpPassManager;
}

namespace heddle::passes {

/// One step of the pipeline.
struct Stage {
  /// The name of its pass.
  llvm::StringLiteral name;
  /// What it does, in a line.
  llvm::StringLiteral summary;
  /// Whether it is optional: a fusion that changes speed and nothing else.
  bool isFusion;
  std::unique_ptr<mlir::Pass> (*create)();
};

/// The stages, in the order they run: the table of contents of this folder.
llvm::ArrayRef<Stage> stages();

/// The stage called `name`, or null. A fusion also answers to its name without the verb, as
/// "attention".
const Stage *findStage(llvm::StringRef name);

/// A choice among the fusions.
class FusionSet {
public:
  static FusionSet all();
  static FusionSet none() { return FusionSet(); }

  /// Reads `all`, `none`, `NAME,...` or `all,-NAME,...`: names are added, and taken out with a `-`,
  /// from left to right; `all` can only stand first and `none` alone, and a `-` takes from what
  /// stands before it. On failure `error` says what was found and which names there are. `named`,
  /// if given, gets those that are in the result by their own names and not by `all`.
  static mlir::FailureOr<FusionSet> parse(llvm::StringRef text, std::string &error,
                                          FusionSet *named = nullptr);

  /// `name` must be that of a fusion.
  bool has(llvm::StringRef name) const;
  FusionSet with(llvm::StringRef name) const;
  FusionSet without(llvm::StringRef name) const;

  /// The names in it, in the order of the stages.
  llvm::SmallVector<llvm::StringRef> names() const;

  /// The shortest text that `parse` reads back.
  std::string str() const;

  friend bool operator==(FusionSet, FusionSet) = default;

private:
  uint32_t bits = 0;
};

/// Adds every stage that always runs and the fusions in `fusions`, in order. `manager` runs on
/// modules.
void buildFusePipeline(mlir::OpPassManager &manager, FusionSet fusions);

/// The same with the fusions in an order of the caller's: any order is correct, ours is the fast
/// one. The names must be those of fusions.
void buildFusePipeline(mlir::OpPassManager &manager, llvm::ArrayRef<llvm::StringRef> fusions);

/// Registers the passes and the pipeline `heddle-fuse{fuse=...}` for textual pipelines.
void registerPassesAndPipelines();

} // namespace heddle::passes
