// Registration of the heddle dialect, and the verifiers of its types.
#include "ir/dialect.h"
#include "ir/ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

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

BlocksType BlocksType::rowsFor() const {
  bool fine = getKind() == BlockKind::Q8_0 || getKind() == BlockKind::Q4_0;
  return get(getContext(), fine ? BlockKind::Row32 : BlockKind::Row256);
}

/// Elements of one position of a cache, a thousand times those of the largest models.
static constexpr int64_t maxCacheElements = int64_t(1) << 32;

LogicalResult CacheType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, int64_t layers,
                                int64_t heads, int64_t keyWidth, int64_t valueWidth, Type element) {
  if (layers < 1 || heads < 1 || keyWidth < 1 || valueWidth < 1)
    return emitError() << "a cache needs at least one layer and head and widths of at least 1, "
                          "found "
                       << layers << " x " << heads << ", " << keyWidth << ", " << valueWidth;
  // What a position takes is computed in many places; none of them should have to expect more.
  int64_t width, rows, elements;
  if (llvm::AddOverflow(keyWidth, valueWidth, width) || llvm::MulOverflow(layers, heads, rows) ||
      llvm::MulOverflow(rows, width, elements) || elements > maxCacheElements)
    return emitError() << "a cache of " << layers << " x " << heads << ", " << keyWidth << ", "
                       << valueWidth << " is larger than any model's";
  auto blocks = dyn_cast<BlocksType>(element);
  if (!element.isF32() && !element.isBF16() && !element.isF16() &&
      !(blocks && blocks.getKind() == BlockKind::Int8))
    return emitError() << "a cache holds f32, bf16, f16 or !heddle.blocks<int8>, not " << element;
  return success();
}

Type CacheType::getViewElement() const {
  return getElement().isBF16() ? getElement() : Type(Float32Type::get(getContext()));
}

} // namespace heddle::ir
