// The programs of a compiled model get their weights: those of a store, and those that are computed
// from these first. Holds no MLIR.
#pragma once

#include "runtime/executor.h"
#include "runtime/weights.h"

namespace heddle::detail {

/// What comes out of code generation, linked.
struct LinkedPrograms {
  runtime::Program prefill, decode;
  runtime::Program load; ///< run once; its results are parameters of the other two
};

/// Programs with weights.
struct BoundModel {
  std::shared_ptr<const runtime::ProgramSet> programs;
  /// Keeps the parameters that were computed; null where none were.
  std::shared_ptr<runtime::WeightStore> computed;
};

/// Runs `load` and binds both others. Errors: those of `WeightStore::bind`, more memory than this
/// process may have.
Result<BoundModel> bindWeights(LinkedPrograms programs, runtime::WeightStore &weights,
                               runtime::ThreadPool &pool,
                               const runtime::WeightProgressFn &progress);

} // namespace heddle::detail
