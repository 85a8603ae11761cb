// Launches against what their kernels declare.
#include "codegen/launch_reader.h"

#include "codegen/element_types.h"
#include "codegen/kernel_contract.h"
#include "runtime/weights.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

using runtime::ElementType;
using runtime::Operand;
using runtime::Source;

/// Sizes in bytes that the place of `operand` has, each of them at least; of the cache, a slot.
std::vector<Size> LaunchReader::bytesOf(Operand operand) const {
  auto tensor = [](ElementType type, ArrayRef<Size> shape) {
    Size bytes = constantSize(runtime::byteSize(type, 1));
    for (const Size &extent : shape)
      bytes = bytes * extent;
    return std::vector<Size>{bytes};
  };
  auto cached = [&](int64_t bytes) {
    std::vector<Size> sizes;
    for (auto [i, dim] : llvm::enumerate(program.dims))
      if (dim.kind == runtime::DimKind::context)
        sizes.push_back(dimSize(i) * constantSize(bytes));
    return sizes;
  };
  switch (operand.source) {
  case Source::slot:
    return program.slots[operand.index].tenants;
  case Source::input:
    return tensor(program.inputs[operand.index].type, program.inputs[operand.index].shape);
  case Source::output:
    return tensor(program.outputs[operand.index].type, program.outputs[operand.index].shape);
  case Source::param:
    return {constantSize(runtime::preparedBytes(program.params[operand.index]))};
  case Source::constant:
    return {constantSize(int64_t(program.constants[operand.index].bytes.size()))};
  case Source::cacheKeys:
    return cached(keyBytes(program.cache));
  case Source::cacheValues:
    return cached(valueBytes(program.cache));
  default:
    return {}; // tables
  }
}

/// What a slot holds is known to nobody but the kernels that use it; everything else has a type.
std::optional<ElementType> LaunchReader::elementOf(Operand operand) const {
  switch (operand.source) {
  case Source::input:
    return program.inputs[operand.index].type;
  case Source::output:
    return program.outputs[operand.index].type;
  case Source::param:
    return program.params[operand.index].type;
  case Source::constant:
    return program.constants[operand.index].type;
  default:
    return std::nullopt;
  }
}

/// Whether `operand` has what the kernel declares as `name`; see takesAttrName.
bool LaunchReader::has(Place place, StringRef name, Attribute what, Operand operand) {
  Type stored = cast<MemRefType>(place.kernel.getArgument(place.index).getType()).getElementType();
  std::optional<ElementType> element = elementOf(operand);
  if (element && !isStoredAs(*element, stored))
    return false;
  Source source = operand.source;
  auto text = dyn_cast<StringAttr>(what);
  std::optional<Size> need =
      text ? parseNumbered(text.getValue(), program.dims.size(), place.firstDim)
           : std::optional<Size>();
  std::vector<Size> bytes = bytesOf(operand);
  bool inPanels =
      source == Source::param && program.params[operand.index].layout == runtime::Layout::panels;
  bool writable = source == Source::slot || source == Source::output;
  if (name == "reads" || name == "writes")
    return need && !inPanels && (writable || (name == "reads" && element)) &&
           llvm::any_of(bytes, [&](const Size &size) { return covers(size, *need); });
  if (name == "cache_keys" || name == "cache_values")
    return need && nameOf(source) == name && isStoredAs(program.cache.element, stored) &&
           llvm::is_contained(bytes, *need);
  if (name == "appends")
    return source == Source::cacheKeys || source == Source::cacheValues;
  if (name == "panels") {
    auto number = dyn_cast<IntegerAttr>(what);
    return number && inPanels && bytes.front() == constantSize(number.getInt());
  }
  if (name == "transposed") {
    auto flag = dyn_cast<BoolAttr>(what);
    return flag && inPanels && flag.getValue() == program.params[operand.index].transposed;
  }
  if (name == "records") {
    std::optional<Size> count = recordCount(nameOf(source), operand.index, program.dims);
    return need && count && covers(*count, *need);
  }
  auto argument = dyn_cast<IntegerAttr>(what);
  return nameOf(source) == name &&
         (source == Source::dims || (argument && argument.getInt() == operand.index));
}

LogicalResult LaunchReader::checkTaken(Place place, Operand operand) {
  auto taken = place.kernel.getArgAttrOfType<DictionaryAttr>(place.index, takesAttrName);
  if (!taken || taken.empty())
    return place.kernel.emitError("argument ")
           << place.index << " does not declare in " << takesAttrName << " what it takes";
  if (llvm::all_of(taken, [&](NamedAttribute each) {
        return has(place, each.getName(), each.getValue(), operand);
      }))
    return success();
  auto error = wrong(place.launch)
               << "gives " << place.launch.getOperands()[place.index] << " as operand "
               << place.index << ", but kernel @" << place.kernel.getSymName() << " takes " << taken
               << ", " << place.kernel.getArgument(place.index).getType() << " there";
  std::vector<Size> have = bytesOf(operand);
  for (const Size &size : have)
    error << (&size == &have.front() ? "; it has bytes: " : ", or ")
          << sizeText(size, program.dims);
  return error;
}

/// The launch's grid and scratch against the kernel's.
LogicalResult LaunchReader::checkContract(Place place, const runtime::Step &step) {
  auto contract = place.kernel->getAttrOfType<DictionaryAttr>(contractAttrName);
  auto tiles = contract ? contract.getAs<ArrayAttr>("tiles") : ArrayAttr();
  auto scratchText = contract ? contract.getAs<StringAttr>("scratch_bytes") : StringAttr();
  if (!tiles || !scratchText)
    return place.kernel.emitError("kernel @")
           << step.symbol << " does not declare " << contractAttrName;
  Builder builder(op.getContext());
  auto found = llvm::map_to_vector(step.grid, [&](const runtime::GridAxis &axis) -> Attribute {
    return builder.getStringAttr(numberedAxis(axis.extent, axis.divisor, place.firstDim));
  });
  if (builder.getArrayAttr(found) != tiles)
    return wrong(place.launch) << "has the grid " << place.launch.getGrid()
                               << " in a program of dimensions " << op.getDims() << ", kernel @"
                               << step.symbol << " was made for tiles " << tiles;
  auto scratch = parseNumbered(scratchText.getValue(), program.dims.size(), place.firstDim);
  if (!scratch || !covers(step.scratch, *scratch))
    return wrong(place.launch) << "gives " << place.launch.getScratch()
                               << " bytes of scratch, kernel @" << step.symbol << " needs "
                               << scratchText;
  if (place.launch.getOperands().size() != operandCount(place.kernel))
    return wrong(place.launch) << "has " << place.launch.getOperands().size()
                               << " operands, kernel @" << step.symbol << " takes "
                               << operandCount(place.kernel);
  return success();
}

/// What a launch writes nothing else of its phase uses: not its other operands, nor launches that
/// it is joined to.
LogicalResult LaunchReader::checkPhase(Place place, const runtime::Step &step) {
  if (!step.joined)
    phase.clear();
  else if (program.steps.empty())
    return wrong(place.launch) << "is joined, to no launch before it";
  size_t before = phase.size();
  for (auto [i, operand] : llvm::enumerate(step.operands)) {
    bool cache = operand.source == Source::cacheKeys || operand.source == Source::cacheValues;
    auto taken = place.kernel.getArgAttrOfType<DictionaryAttr>(i, takesAttrName);
    Use use{operand, taken.contains("writes") || taken.contains("appends")};
    // A kernel may have the cache, which it knows to be one, under two types.
    for (const Use &other : ArrayRef(phase).take_front(cache ? before : phase.size()))
      if (other.operand == operand && (use.written || other.written))
        return wrong(place.launch)
               << "shares operand " << i << ", " << place.launch.getOperands()[i]
               << ", with another of its phase, though one of them is written";
    phase.push_back(use);
  }
  return success();
}

} // namespace heddle::codegen
