#include "passes/mask_conjunction.h"

#include "passes/provenance.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

/// Whether what `mask` hides depends on which sequence or position a row has.
static bool looksAtRows(ir::MaskOp mask) {
  return mask.getQueries() || mask.getKeys() || mask.getCausal() || mask.getWindow();
}

LogicalResult MaskConjunction::add(ir::MaskOp mask, std::string &why) {
  if (looksAtRows(mask)) {
    if (described && (mask.getQueries() != queries || mask.getKeys() != keys)) {
      why = "masks '" + idOf(described) + "' and '" + idOf(mask) +
            "' describe queries and keys by different sequences";
      return failure();
    }
    described = mask;
    queries = mask.getQueries();
    keys = mask.getKeys();
  }
  any = true;
  if (mask.getCausal()) {
    // A key below the prefix is seen by all: of two causal masks both must agree to that.
    if (!causal)
      prefix = mask.getPrefix();
    else if (prefix && mask.getPrefix())
      prefix = std::min(*prefix, int64_t(*mask.getPrefix()));
    else
      prefix.reset();
    causal = true;
  }
  if (auto size = mask.getWindow())
    window = std::min(window.value_or(*size), int64_t(*size));
  if (mask.getMask())
    add(mask.getMask());
  return success();
}

void MaskConjunction::add(Value tensor) {
  any = true;
  if (!llvm::is_contained(tensors, tensor))
    tensors.push_back(tensor);
}

} // namespace heddle::passes
