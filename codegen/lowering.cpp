// From planned operations to kernels and launches.
#include "codegen/lowering.h"

#include "codegen/plan.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

/// What tells two operations apart: everything but names, buffers and layers.
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
      stream << ' ' << sizeText(size, context.dims.table());
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
         builder.getNamedAttr("transposed", builder.getBoolAttr(op->hasAttr("transpose_rhs")))}));
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
  case Ref::cacheValues: {
    auto append = dyn_cast<CacheAppendInterface>(op);
    if (!append)
      append = cast<CacheAppendInterface>(op->getOperand(ref.index).getDefiningOp());
    return Attribute(
        place(mlir, ref.kind == Ref::cacheKeys ? "cache_keys" : "cache_values", append.getLayer()));
  }
  }
  llvm_unreachable("every kind is handled");
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

LogicalResult Lowering::addLaunch(Operation *op, const Launch &launch, bool joined) {
  OpBuilder builder = OpBuilder::atBlockEnd(&program);
  SmallVector<Attribute> operands = {builder.getStringAttr("dims")};
  for (Ref ref : launch.operands) {
    FailureOr<Attribute> operand = resolve(op, ref);
    if (failed(operand))
      return failure();
    operands.push_back(*operand);
  }
  auto text = [&](const Size &size) { return sizeText(size, context.dims.table()); };
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
  auto [entry, isNew] = known.try_emplace(signature(op));
  if (isNew) {
    current.clear();
    if (failed(op.lower(*this)))
      return failure();
    entry->second = std::move(current);
  }
  // Of several launches each needs what the one before it made.
  for (const auto &[i, launch] : llvm::enumerate(entry->second))
    if (failed(addLaunch(op, launch, i == 0 && op->hasAttr(joinedAttrName))))
      return failure();
  return success();
}

} // namespace heddle::codegen
