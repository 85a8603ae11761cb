// From planned operations to kernels and launches.
#include "codegen/lowering.h"

#include "codegen/element_types.h"
#include "codegen/kernel_contract.h"
#include "codegen/plan.h"
#include "runtime/weights.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

/// The entry of the table of dimensions from which on the kernels of `op` see it. Operations with
/// tables or a cache see all of it.
static uint32_t firstDimOf(Operation *op, const PlanContext &context) {
  std::optional<uint32_t> first;
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults()))) {
    if (!isa<RankedTensorType>(value.getType()))
      return 0;
    const View &view = context.views.of(value);
    if (isa_and_nonnull<CacheAppendInterface>(view.root.getDefiningOp()))
      return 0;
    for (ArrayRef<Size> sizes :
         {ArrayRef<Size>(view.sizes), ArrayRef<Size>(view.strides), ArrayRef<Size>(view.offset)})
      for (const Size &size : sizes)
        if (auto lowest = lowestDim(size))
          first = std::min(*lowest, first.value_or(*lowest));
  }
  return first.value_or(0);
}

/// What tells two operations apart: everything but names, buffers, layers and the first dimension.
std::string Lowering::signature(Operation *op) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << op->getName();
  for (NamedAttribute attribute : op->getAttrs()) {
    StringRef name = attribute.getName();
    bool naming = name == idAttrName || name == fromAttrName || name == buffersAttrName ||
                  name == temporariesAttrName || name == joinedAttrName ||
                  (isa<CacheAppendInterface>(op) && name == "layer");
    if (!naming)
      stream << ' ' << name << '=' << attribute.getValue();
    else if (name == temporariesAttrName)
      stream << ' ' << name << '=' << cast<ArrayAttr>(attribute.getValue()).size();
  }
  auto writeSizes = [&](ArrayRef<Size> sizes) {
    for (const Size &size : sizes)
      stream << ' ' << numberedText(size, firstDim);
  };
  for (Value value : llvm::concat<Value>(SmallVector<Value>(op->getOperands()),
                                         SmallVector<Value>(op->getResults()))) {
    stream << "; " << value.getType();
    if (isa<RankedTensorType>(value.getType())) {
      const View &view = context.views.of(value);
      writeSizes(view.strides);
      writeSizes(view.sizes);
      writeSizes(view.offset);
      // Attention reads keys and values where the cache has them.
      Operation *source = view.root.getDefiningOp();
      stream << (isa_and_nonnull<CacheAppendInterface>(source) ? " cached" : "");
      if (auto append = dyn_cast_or_null<CacheAppendInterface>(source))
        stream << context.dims.rows(append.getRows()).argument;
    } else if (isa<SequencesType>(value.getType())) {
      DimAnalysis::Rows rows = context.dims.rows(value);
      stream << ' ' << rows.argument << rows.keys;
    }
  }
  for (Value result : op->getResults())
    stream << result.use_empty();
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block) {
        // Values are numbered by the printer from the start of the region.
        stream << "\n";
        for (Value operand : inner.getOperands()) {
          if (auto argument = dyn_cast<BlockArgument>(operand))
            stream << " a" << argument.getArgNumber();
          else
            stream << " o" << std::distance(block.begin(), operand.getDefiningOp()->getIterator());
        }
        stream << inner.getName();
        for (NamedAttribute attribute : inner.getAttrs())
          stream << ' ' << attribute.getName() << attribute.getValue();
        if (inner.getPropertiesStorage())
          stream << inner.getPropertiesAsAttribute();
        stream << inner.getResultTypes();
      }
  return text;
}

static StringAttr place(MLIRContext *context, StringRef kind, uint64_t index) {
  return StringAttr::get(context, (kind + ":" + Twine(index)).str());
}

/// Where the buffer of a tensor lies.
static FailureOr<Attribute> bufferOf(Value root) {
  MLIRContext *context = root.getContext();
  if (auto argument = dyn_cast<BlockArgument>(root))
    return Attribute(place(context, "input", argument.getArgNumber()));
  Operation *op = root.getDefiningOp();
  Builder builder(context);
  if (auto weight = dyn_cast<WeightOp>(op))
    return Attribute(builder.getDictionaryAttr(
        {builder.getNamedAttr("param", weight.getParamAttr()),
         builder.getNamedAttr("type", TypeAttr::get(weight.getType())),
         builder.getNamedAttr("layout", builder.getStringAttr("plain"))}));
  if (auto constant = dyn_cast<ConstantOp>(op))
    return Attribute(constant.getValueAttr());
  auto buffers = op->getAttrOfType<ArrayAttr>(buffersAttrName);
  unsigned index = cast<OpResult>(root).getResultNumber();
  if (!buffers || index >= buffers.size())
    return op->emitOpError("has no buffer for its result ") << index << "; run the plan first";
  return buffers[index];
}

/// The append to the layer that `op` has as a side of the cache.
static CacheAppendInterface appendOf(Operation *op, Ref ref) {
  if (auto append = dyn_cast<CacheAppendInterface>(op))
    return append;
  return cast<CacheAppendInterface>(op->getOperand(ref.index).getDefiningOp());
}

FailureOr<Attribute> Lowering::resolve(Operation *op, Ref ref) const {
  MLIRContext *mlir = op->getContext();
  Builder builder(mlir);
  auto rowsOf = [&](StringRef tokens, StringRef keys) -> Attribute {
    DimAnalysis::Rows rows = context.dims.rows(op->getOperand(ref.index));
    return place(mlir, rows.keys ? keys : tokens, rows.argument);
  };
  switch (ref.kind) {
  case Ref::operand:
    return bufferOf(view(op->getOperand(ref.index)).root);
  case Ref::result:
    return bufferOf(op->getResult(ref.index));
  case Ref::panels: {
    auto weight = op->getOperand(ref.index).getDefiningOp<WeightOp>();
    if (!weight)
      return op->emitOpError("needs a weight as operand ") << ref.index;
    return Attribute(builder.getDictionaryAttr(
        {builder.getNamedAttr("param", weight.getParamAttr()),
         builder.getNamedAttr("type", TypeAttr::get(weight.getType())),
         builder.getNamedAttr("layout", builder.getStringAttr("panels")),
         builder.getNamedAttr("transposed", builder.getBoolAttr(isTransposed(op, ref.index)))}));
  }
  case Ref::temporary: {
    auto temporaries = op->getAttrOfType<ArrayAttr>(temporariesAttrName);
    if (!temporaries || ref.index >= temporaries.size())
      return op->emitOpError("has no temporary ") << ref.index << "; run the plan first";
    return temporaries[ref.index];
  }
  case Ref::sequences:
    return rowsOf("sequences", "sequences");
  case Ref::rows:
    return rowsOf("rows", "key_rows");
  case Ref::keyRows:
    return rowsOf("key_rows", "key_rows");
  case Ref::outputRows:
    return rowsOf("output_rows", "output_rows");
  case Ref::cacheKeys:
  case Ref::cacheValues:
    return Attribute(place(mlir, ref.kind == Ref::cacheKeys ? "cache_keys" : "cache_values",
                           appendOf(op, ref).getLayer()));
  }
  llvm_unreachable("every kind is handled");
}

/// What a kernel built for `op` takes as `ref`; see takesAttrName.
DictionaryAttr Lowering::takenAs(Operation *op, Ref ref) const {
  Builder builder(op->getContext());
  NamedAttrList taken;
  auto bytes = [&](StringRef name, const Size &size) {
    taken.set(name, builder.getStringAttr(numberedText(size, firstDim)));
  };
  auto buffer = [&](StringRef name, Value tensor) {
    Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
    // Blocks have no views.
    bytes(name, isa<BlocksType>(element)
                    ? storedBytes(context.dims.sizes(tensor), element)
                    : view(tensor).reach() * constantSize(storedBytes(element)));
  };
  auto table = [&](StringRef name) {
    uint32_t argument = context.dims.rows(op->getOperand(ref.index)).argument;
    taken.set(name, builder.getI64IntegerAttr(argument));
    if (auto count = recordCount(name, argument, context.dims.table()))
      bytes("records", *count);
  };
  auto cache = [&](StringRef name, int64_t (*bytesOf)(const runtime::CacheShape &)) {
    if (isa<CacheAppendInterface>(op))
      taken.set("appends", builder.getUnitAttr());
    auto type = cast<CacheType>(appendOf(op, ref).getCache().getType());
    bytes(name, context.dims.context() * constantSize(bytesOf(cacheShapeOf(type))));
  };
  switch (ref.kind) {
  case Ref::operand:
    buffer("reads", op->getOperand(ref.index));
    break;
  case Ref::result:
    buffer("writes", op->getResult(ref.index));
    break;
  case Ref::temporary:
    bytes("writes", cast<KernelOpInterface>(op).temporaries(context)[ref.index]);
    break;
  case Ref::panels: {
    auto type = cast<RankedTensorType>(op->getOperand(ref.index).getType());
    bool transposed = isTransposed(op, ref.index);
    int64_t packed = runtime::preparedBytes({.name = {},
                                             .type = *elementTypeOf(type.getElementType()),
                                             .shape = type.getShape().vec(),
                                             .layout = runtime::Layout::panels,
                                             .transposed = transposed});
    taken.set("panels", builder.getI64IntegerAttr(packed));
    taken.set("transposed", builder.getBoolAttr(transposed));
    break;
  }
  case Ref::cacheKeys:
    cache("cache_keys", keyBytes);
    break;
  case Ref::cacheValues:
    cache("cache_values", valueBytes);
    break;
  case Ref::sequences:
    table("sequences");
    break;
  case Ref::rows:
    table(context.dims.rows(op->getOperand(ref.index)).keys ? "key_rows" : "rows");
    break;
  case Ref::keyRows:
    table("key_rows");
    break;
  case Ref::outputRows:
    table("output_rows");
    break;
  }
  return taken.getDictionary(op->getContext());
}

/// Writes down what a new kernel takes, so that every launch can be checked against it.
void Lowering::declare(Operation *op, const Launch &launch) {
  auto kernel = kernels.lookupSymbol<func::FuncOp>(launch.kernel);
  Builder builder(op->getContext());
  kernel.setArgAttr(0, takesAttrName,
                    builder.getDictionaryAttr(builder.getNamedAttr("dims", builder.getUnitAttr())));
  for (auto [i, ref] : llvm::enumerate(launch.operands))
    kernel.setArgAttr(1 + i, takesAttrName, takenAs(op, ref));
  auto tiles = llvm::map_to_vector(launch.grid, [&](const Launch::Axis &axis) {
    return Attribute(builder.getStringAttr(numberedAxis(axis.extent, axis.tile, firstDim)));
  });
  kernel->setAttr(contractAttrName,
                  builder.getDictionaryAttr(
                      {builder.getNamedAttr("tiles", builder.getArrayAttr(tiles)),
                       builder.getNamedAttr("scratch_bytes", builder.getStringAttr(numberedText(
                                                                 launch.scratch, firstDim)))}));
}

static StringRef scheduleName(runtime::Schedule schedule) {
  switch (schedule) {
  case runtime::Schedule::serial:
    return "serial";
  case runtime::Schedule::even:
    return "even";
  case runtime::Schedule::dynamic:
    return "dynamic";
  }
  llvm_unreachable("every schedule is handled");
}

/// Repeats a launch whose sizes were told when `launchFirstDim` was the first dimension.
LogicalResult Lowering::addLaunch(Operation *op, const Launch &launch, uint32_t launchFirstDim,
                                  bool joined) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program);
  SmallVector<Attribute> operands = {firstDim == 0 ? builder.getStringAttr("dims")
                                                   : place(op->getContext(), "dims", firstDim)};
  for (Ref ref : launch.operands) {
    FailureOr<Attribute> operand = resolve(op, ref);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  auto text = [&](const Size &size) {
    return sizeText(moveDims(size, launchFirstDim, firstDim), context.dims.table());
  };
  auto grid = llvm::map_to_vector(launch.grid, [&](const Launch::Axis &axis) {
    return Attribute(builder.getStringAttr(text(axis.extent) + "/" + std::to_string(axis.tile)));
  });
  auto id = op->getAttrOfType<StringAttr>(idAttrName);
  LaunchOp::create(
      builder, op->getLoc(), launch.kernel, id ? id.getValue() : op->getName().stripDialect(),
      builder.getArrayAttr(operands), builder.getArrayAttr(grid), scheduleName(launch.schedule),
      text(launch.scratch), text(launch.flops), text(launch.bytes), text(launch.attention), joined);
  return success();
}

LogicalResult Lowering::lower(KernelOpInterface op) {
  firstDim = firstDimOf(op, context);
  auto [entry, isNew] = known.try_emplace(signature(op));
  if (isNew) {
    current.clear();
    if (failed(op.lower(*this)))
      return failure();
    if (!seesItsDims)
      return op.emitOpError("has a kernel that reads a dimension which its tensors do not have");
    for (const Launch &launch : current)
      declare(op, launch);
    entry->second = {firstDim, std::move(current)};
  }
  // Of several launches each needs what the one before it made.
  for (const auto &[i, launch] : llvm::enumerate(entry->second.launches))
    if (failed(
            addLaunch(op, launch, entry->second.firstDim, i == 0 && op->hasAttr(joinedAttrName))))
      return failure();
  return success();
}

} // namespace heddle::codegen
