// What the compiler did with a graph, and why.
#pragma once

#include "frontend/model.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// A fusion that happened, or nearly did.
struct FusionEvent {
  std::string fusion; ///< its name, "fuse-attention"
  bool fired = false;
  std::string shape;    ///< what measurements of it are told apart by; empty where none are
  std::string declined; ///< not fired because it does not pay: where, and what was measured
  std::string id;       ///< of the operation it made, or of the one it left alone
  std::vector<std::string> from;   ///< fired: the operations it made it of
  std::string reason, remedy;      ///< not fired: what stopped it, and what could be done
  std::vector<std::string> places; ///< where they are in the user's source, "file:line"
};

/// An operation of the compiled graph.
struct OperationInfo {
  std::string id;
  std::string name;              ///< "heddle.linear"
  std::vector<std::string> from; ///< the operations of the graph it was made of; itself, if of none
};

struct Explanation {
  std::vector<FusionEvent> events;
  std::vector<OperationInfo> operations; ///< of level fused, in order
  std::vector<std::string> fusions;      ///< the names of those that were on
};

/// Fuses a graph as `compile` would and says what happened. Errors: as for `show`; a text that is
/// fused already.
Result<Explanation> explain(const ModelSource &source, const CompileOptions &options = {});

/// A name and what it stands for.
struct CatalogEntry {
  std::string name;
  std::string kind;
  std::string summary;
};

/// All passes in the order in which they run. The kinds are the stages, "fuse", "plan" and "lower",
/// or "fusion" for those of stage "fuse" that `--fuse` knows.
std::vector<CatalogEntry> listPasses();
/// The operations of the dialect. The kinds are the levels at which they appear.
std::vector<CatalogEntry> listOperations();
/// The operations for which code is generated; all others are rewritten into these.
std::vector<CatalogEntry> listKernels();
/// The fusions, in the order in which they run.
std::vector<CatalogEntry> listFusions();

} // namespace heddle
