// What a kernel of level loops says of itself.
#include "codegen/kernel_contract.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::codegen {

/// Arguments after the operands: the first tile, the one after the last, the scratch.
static constexpr unsigned trailing = 3;

unsigned operandCount(func::FuncOp kernel) { return kernel.getNumArguments() - trailing; }

LogicalResult checkKernel(func::FuncOp function) {
  auto wrong = [&](const Twine &what) {
    return function.emitError("kernel @") << function.getSymName() << ' ' << what;
  };
  if (function.isExternal())
    return wrong("has no body");
  if (function.getNumResults() != 0)
    return wrong("has results; kernels write to their operands");
  MLIRContext *context = function.getContext();
  auto flatOf = [](Type element) { return MemRefType::get({ShapedType::kDynamic}, element); };
  Type index = IndexType::get(context), i64 = IntegerType::get(context, 64);
  ArrayRef<Type> types = function.getArgumentTypes();
  Type last[] = {index, index, flatOf(IntegerType::get(context, 8))};
  auto isFlat = [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && memref.getRank() == 1 && memref.isDynamicDim(0) && !memref.getMemorySpace() &&
           memref.getLayout().isIdentity() && memref.getElementType().isIntOrFloat();
  };
  if (types.size() < 1 + trailing || types.front() != flatOf(i64) ||
      types.take_back(trailing) != ArrayRef<Type>(last) ||
      !llvm::all_of(types.drop_back(trailing), isFlat))
    return wrong("needs arguments (memref<?xi64>, memrefs of rank 1 and open size ..., index, "
                 "index, memref<?xi8>)");
  return success();
}

std::string numberedAxis(const Size &extent, int64_t tile, uint32_t first) {
  return numberedText(extent, first) + "/" + std::to_string(tile);
}

std::optional<Size> recordCount(StringRef name, uint32_t argument, ArrayRef<runtime::Dim> dims) {
  using runtime::DimKind;
  static constexpr std::pair<StringLiteral, DimKind> counts[] = {{"sequences", DimKind::sequences},
                                                                 {"rows", DimKind::tokens},
                                                                 {"key_rows", DimKind::keys},
                                                                 {"output_rows", DimKind::outputs}};
  for (auto [table, kind] : counts)
    for (auto [i, dim] : llvm::enumerate(dims))
      if (table == name && dim.kind == kind && dim.input == argument)
        return dimSize(i);
  return std::nullopt;
}

} // namespace heddle::codegen
