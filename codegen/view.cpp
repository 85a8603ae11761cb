// Strided views. Kernels require the last dimension to be contiguous, so an operation becomes a
// view only where that holds; else it is a copy.
#include "codegen/view.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

SmallVector<Size> rowMajor(ArrayRef<Size> sizes) {
  SmallVector<Size> strides(sizes.size());
  Size stride = constantSize(1);
  for (size_t i = sizes.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * sizes[i];
  }
  return strides;
}

bool View::isContiguous() const { return llvm::equal(strides, rowMajor(sizes)); }

Size View::reach() const {
  Size last = offset;
  for (auto [size, stride] : llvm::zip(sizes, strides))
    last = last + (size + constantSize(-1)) * stride;
  return last + constantSize(1);
}

const View &ViewAnalysis::of(Value tensor) const {
  auto found = views.find(tensor);
  assert(found != views.end() && "the analysis visits every tensor");
  return found->second;
}

bool ViewAnalysis::isView(Operation *op) const {
  return op->getNumResults() == 1 && isa<RankedTensorType>(op->getResult(0).getType()) &&
         of(op->getResult(0)).root != op->getResult(0);
}

static bool isOne(const Size &size) { return asConstant(size) == 1; }

/// The view that the result of `op` is of its operand, if it is one.
std::optional<View> ViewAnalysis::derive(Operation *op) const {
  auto renamed = [&](Value input) {
    View view = of(input);
    view.sizes = SmallVector<Size>(dims.sizes(op->getResult(0)));
    return view;
  };
  return llvm::TypeSwitch<Operation *, std::optional<View>>(op)
      .Case([&](SplitHeadsOp split) -> std::optional<View> {
        View view = renamed(split.getInput());
        view.strides = {view.sizes[2], view.strides[0], constantSize(1)};
        return view;
      })
      .Case([&](MergeHeadsOp merge) -> std::optional<View> {
        const View &input = of(merge.getInput());
        if (!(input.strides[0] == input.sizes[2]))
          return std::nullopt;
        View view = renamed(merge.getInput());
        view.strides = {input.strides[1], constantSize(1)};
        return view;
      })
      .Case([&](TransposeOp transpose) -> std::optional<View> {
        const View &input = of(transpose.getInput());
        View view = renamed(transpose.getInput());
        for (auto [i, axis] : llvm::enumerate(transpose.getPermutation()))
          view.strides[i] = input.strides[axis];
        if (view.strides.empty() || isOne(view.strides.back()))
          return view;
        return std::nullopt;
      })
      .Case([&](ReshapeOp reshape) -> std::optional<View> {
        if (!of(reshape.getInput()).isContiguous())
          return std::nullopt;
        View view = renamed(reshape.getInput());
        view.strides = rowMajor(view.sizes);
        return view;
      })
      .Case([&](SliceOp slice) -> std::optional<View> {
        View view = renamed(slice.getInput());
        view.offset = view.offset + view.strides[slice.getAxis()] * constantSize(slice.getStart());
        return view;
      })
      .Default([](Operation *) { return std::nullopt; });
}

ViewAnalysis::ViewAnalysis(func::FuncOp function, const DimAnalysis &dims) : dims(dims) {
  auto own = [&](Value value, bool rowsFirst) {
    if (!isa<RankedTensorType>(value.getType()))
      return;
    SmallVector<Size> sizes(dims.sizes(value));
    SmallVector<Size> strides = rowMajor(sizes);
    if (rowsFirst)
      strides = {sizes[2], sizes[0] * sizes[2], constantSize(1)};
    views[value] = {value, sizes, strides, {}};
  };
  for (BlockArgument argument : function.getArguments())
    own(argument, false);
  for (Operation &op : function.getBody().front().without_terminator()) {
    std::optional<View> view = derive(&op);
    if (view)
      views[op.getResult(0)] = *view;
    for (Value result : op.getResults())
      if (!view)
        own(result, op.hasAttr(rowsLayoutAttrName));
  }
}

} // namespace heddle::codegen
