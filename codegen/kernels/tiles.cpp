// How kernels are cut into tiles.
#include "codegen/kernels/tiles.h"

#include "codegen/element_types.h"
#include "codegen/kernels/region.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::codegen {

Size bytesOf(const PlanContext &context, Value tensor) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  return storedBytes(context.dims.sizes(tensor), element);
}

Size scoreBytes(const PlanContext &context, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t rank = type.getRank();
  bool scores = rank >= 2 && type.isDynamicDim(rank - 1) && type.isDynamicDim(rank - 2);
  return scores ? bytesOf(context, tensor) : Size{};
}

int64_t rowsPerTile(const Size &width) {
  // An unknown width is taken for 1024.
  int64_t known = std::max<int64_t>(asConstant(width).value_or(1024), 1);
  return std::clamp<int64_t>(tileElements / known, 1, 32);
}

bool isMultiple(const Size &size, int64_t factor) {
  return llvm::all_of(
      size, [&](const runtime::SizeTerm &term) { return term.coefficient % factor == 0; });
}

void forTensorRows(KernelBuilder &kernel, Launch &launch, ArrayRef<Size> sizes,
                   llvm::function_ref<void(ArrayRef<Value>)> body) {
  for (const Size &size : sizes.empty() ? sizes : sizes.drop_back())
    launch.grid.push_back({size, 1});
  if (launch.grid.empty()) {
    launch.grid.push_back({constantSize(1), 1});
    return kernel.forTiles(launch.grid, [&](ArrayRef<Value>) { body({}); });
  }
  int64_t rows = launch.grid.back().tile = rowsPerTile(sizes.back());
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    Value count = kernel.size(sizes[sizes.size() - 2]);
    forRows(kernel.emit, tile.back(), rows, count, [&](Value row) {
      SmallVector<Value> place(tile.drop_back());
      place.push_back(row);
      body(place);
    });
  });
}

void forTensorColumns(KernelBuilder &kernel, Launch &launch, ArrayRef<Size> sizes, unsigned axis,
                      llvm::function_ref<void(ArrayRef<Value>, Value)> body) {
  Emit &e = kernel.emit;
  for (auto [i, size] : llvm::enumerate(sizes))
    launch.grid.push_back({i == axis ? constantSize(1) : size, 1});
  launch.grid.back().tile = columnTile;
  kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
    Value low = e.mul(tile.back(), columnTile);
    Value high = e.min(e.add(low, columnTile), kernel.size(sizes.back()));
    forLanes(e, low, high, isMultiple(sizes.back(), lanes), [&](Value column, Value mask) {
      SmallVector<Value> at(tile);
      at[axis] = e.index(0);
      at.back() = column;
      body(at, mask);
    });
  });
}

} // namespace heddle::codegen
