#include "passes/mask_conjunction.h"

#include "passes/provenance.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

/// Whether what `mask` hides depends on which sequence or position a row has.
static bool looksAtRows(ir::MaskOp mask) {
  return mask.getQueries() || mask.getKeys() || mask.getCausal() || mask.getWindow() ||
         mask.getChunk();
}

LogicalResult MaskConjunction::add(ir::MaskOp mask, std::string &why) {
  auto both = [&](ir::MaskOp other) {
    return "masks '" + idOf(other) + "' and '" + idOf(mask) + "'";
  };
  if (looksAtRows(mask)) {
    if (described && (mask.getQueries() != queries || mask.getKeys() != keys)) {
      why = both(described) + " describe queries and keys by different sequences";
      return failure();
    }
    described = mask;
    queries = mask.getQueries();
    keys = mask.getKeys();
  }
  if (auto size = mask.getChunk()) {
    // Whoever shares the smaller chunk shares the larger one, if it is a multiple.
    int64_t smaller = std::min(chunk.value_or(*size), int64_t(*size));
    int64_t larger = std::max(chunk.value_or(*size), int64_t(*size));
    if (larger % smaller != 0) {
      why = both(chunked) + " have chunks of " + std::to_string(*chunk) + " and " +
            std::to_string(*size) + " positions, of which neither divides the other";
      return failure();
    }
    chunk = smaller;
    chunked = mask;
  }
  if (mask.getQuerySegments()) {
    if (segmented &&
        (mask.getQuerySegments() != querySegments || mask.getKeySegments() != keySegments)) {
      why = both(segmented) + " number their segments differently";
      return failure();
    }
    segmented = mask;
    querySegments = mask.getQuerySegments();
    keySegments = mask.getKeySegments();
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
