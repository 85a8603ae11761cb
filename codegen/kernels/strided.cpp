// Elementwise kernels over strided tensors.
#include "codegen/kernels/strided.h"

#include "codegen/kernels/region.h"
#include "codegen/kernels/tiles.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::codegen {

Strided broadcastTo(const PlanContext &context, Ref ref, Value value, ArrayRef<Size> sizes) {
  auto type = cast<RankedTensorType>(value.getType());
  const View &view = context.views.of(value);
  Strided strided{ref, type.getElementType(), {}, view.offset};
  strided.strides.resize(sizes.size());
  size_t lead = sizes.size() - view.sizes.size();
  for (auto [i, stride] : llvm::enumerate(view.strides))
    if (type.getDimSize(i) != 1 || asConstant(sizes[lead + i]) == 1)
      strided.strides[lead + i] = stride;
  return strided;
}

namespace {

/// The iteration with as few dimensions as possible.
struct Iteration {
  SmallVector<Size> sizes;
  SmallVector<Strided> tensors;

  Iteration(ArrayRef<Size> sizes, ArrayRef<Strided> inputs, const Strided &result)
      : sizes(sizes), tensors(inputs) {
    tensors.push_back(result);
    for (size_t i = sizes.size(); i-- > 0;)
      if (asConstant(sizes[i]) == 1 && (i + 1 < this->sizes.size() || canDropLast(i)))
        drop(i);
    for (size_t i = this->sizes.size(); i-- > 1;)
      if (canJoin(i - 1))
        join(i - 1);
    if (this->sizes.empty()) {
      this->sizes.push_back(constantSize(1));
      for (Strided &tensor : tensors)
        tensor.strides.push_back(constantSize(1));
    }
  }

private:
  bool canDropLast(size_t last) const {
    return last == 0 || llvm::all_of(tensors, [&](const Strided &tensor) {
             const std::optional<Size> &stride = tensor.strides[last - 1];
             return !stride || asConstant(*stride) == 1;
           });
  }
  void drop(size_t i) {
    sizes.erase(sizes.begin() + i);
    for (Strided &tensor : tensors)
      tensor.strides.erase(tensor.strides.begin() + i);
  }
  /// Whether dimension i + 1 ends where the next entry of dimension i begins, everywhere.
  bool canJoin(size_t i) const {
    return llvm::all_of(tensors, [&](const Strided &tensor) {
      const std::optional<Size> &outer = tensor.strides[i], &inner = tensor.strides[i + 1];
      return outer && inner ? *outer == *inner * sizes[i + 1] : !outer && !inner;
    });
  }
  void join(size_t i) {
    sizes[i + 1] = sizes[i] * sizes[i + 1];
    sizes.erase(sizes.begin() + i);
    for (Strided &tensor : tensors)
      tensor.strides.erase(tensor.strides.begin() + i);
  }
};

/// A window into a tensor that has the dimensions along which it is not repeated.
struct Window {
  Value memref;
  SmallVector<unsigned> dims;
  bool repeats; ///< one element for all lanes

  Window(KernelBuilder &kernel, const Strided &tensor, ArrayRef<Size> sizes) {
    SmallVector<Size> ownSizes, ownStrides;
    for (auto [i, stride] : llvm::enumerate(tensor.strides))
      if (stride) {
        dims.push_back(i);
        ownSizes.push_back(sizes[i]);
        ownStrides.push_back(*stride);
      }
    repeats = !tensor.strides.back();
    memref = kernel.window(kernel.flat(tensor.ref, storedType(tensor.element)), ownSizes,
                           ownStrides, tensor.offset);
  }

  SmallVector<Value> at(ArrayRef<Value> place) const {
    return llvm::map_to_vector(dims, [&](unsigned dim) { return place[dim]; });
  }
};

} // namespace

void lowerElementwise(Lowering &lowering, Operation *op, StringRef name, ArrayRef<Size> sizes,
                      ArrayRef<Strided> inputs, const Strided &result, Launch launch,
                      llvm::function_ref<Value(Emit &, ArrayRef<Value>)> body) {
  Iteration iteration(sizes, inputs, result);
  KernelBuilder kernel(lowering, op, name);
  Emit &e = kernel.emit;
  SmallVector<Window> windows;
  for (const Strided &tensor : iteration.tensors)
    windows.emplace_back(kernel, tensor, iteration.sizes);

  auto element = [&](ArrayRef<Value> row, Value column, Value mask) {
    SmallVector<Value> place(row);
    place.push_back(column);
    SmallVector<Value> elements;
    for (const Window &window : ArrayRef(windows).drop_back())
      elements.push_back(window.repeats ? loadRepeated(e, window.memref, window.at(place))
                                        : loadElements(e, window.memref, window.at(place), mask));
    storeElements(e, body(e, elements), windows.back().memref, windows.back().at(place), mask);
  };

  const Size &width = iteration.sizes.back();
  // A few rows, each as long as the call makes them, are cut along their length.
  ArrayRef<Size> outer = ArrayRef(iteration.sizes).drop_back();
  bool fewRows = llvm::all_of(outer, [](const Size &size) { return asConstant(size); });
  bool whole = isMultiple(width, lanes);
  if (outer.empty() || (fewRows && !asConstant(width))) {
    for (const Size &size : outer)
      launch.grid.push_back({size, 1});
    launch.grid.push_back({width, tileElements});
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      Value low = e.mul(tile.back(), tileElements);
      Value high = e.min(e.add(low, tileElements), kernel.size(width));
      forLanes(e, low, high, whole,
               [&](Value column, Value mask) { element(tile.drop_back(), column, mask); });
    });
  } else {
    forTensorRows(kernel, launch, iteration.sizes, [&](ArrayRef<Value> row) {
      forLanes(e, e.index(0), kernel.size(width), whole,
               [&](Value column, Value mask) { element(row, column, mask); });
    });
  }
  kernel.finish(std::move(launch));
}

void lowerCopy(Lowering &lowering, Operation *op, ArrayRef<Size> sizes, const Strided &input,
               const Strided &result) {
  Launch launch;
  Size count = elementCount(sizes);
  launch.bytes = count * constantSize(2 * storedBytes(result.element));
  lowerElementwise(lowering, op, op->getName().stripDialect(), sizes, input, result,
                   std::move(launch), [](Emit &, ArrayRef<Value> elements) { return elements[0]; });
}

} // namespace heddle::codegen
