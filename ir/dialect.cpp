// Registration of the heddle dialect, and the verifiers of its types.
#include "ir/dialect.h"
#include "ir/ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

#include "ir/dialect.cpp.inc"

#include "ir/enums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/attributes.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/types.cpp.inc"

namespace heddle::ir {

void HeddleDialect::initialize() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "ir/types.cpp.inc"
      >();
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/attributes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/operations.cpp.inc"
      >();
}

LogicalResult CacheType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t layers,
                                int64_t heads, int64_t keyWidth, int64_t valueWidth, Type element) {
  if (layers < 1 || heads < 1 || keyWidth < 1 || valueWidth < 1)
    return emitError() << "a cache needs at least one layer and head and widths of at least 1, "
                          "found "
                       << layers << " x " << heads << ", " << keyWidth << ", " << valueWidth;
  if (!element.isF32() && !element.isBF16())
    return emitError() << "a cache holds f32 or bf16, not " << element;
  return success();
}

} // namespace heddle::ir
