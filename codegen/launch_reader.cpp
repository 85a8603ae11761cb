// From a launch in the IR to a step the runtime can run.
#include "codegen/launch_reader.h"

#include "codegen/element_types.h"
#include "codegen/kernel_contract.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

using runtime::ElementType;
using runtime::Operand;
using runtime::Source;

static constexpr std::pair<Source, llvm::StringLiteral> sources[] = {
    {Source::dims, "dims"},
    {Source::input, "input"},
    {Source::sequences, "sequences"},
    {Source::rows, "rows"},
    {Source::keyRows, "key_rows"},
    {Source::outputRows, "output_rows"},
    {Source::slot, "slot"},
    {Source::cacheKeys, "cache_keys"},
    {Source::cacheValues, "cache_values"},
    {Source::output, "output"}};

StringRef nameOf(Source source) {
  for (auto [known, name] : sources)
    if (known == source)
      return name;
  return "";
}

InFlightDiagnostic LaunchReader::wrong(LaunchOp launch) {
  return launch.emitOpError("'") << launch.getId() << "' ";
}

//===-- Sizes ---------------------------------------------------------------------------------===//

FailureOr<Size> LaunchReader::readSize(LaunchOp launch, StringRef text) {
  std::optional<Size> size = parseSize(text, program.dims);
  if (!size || !isNatural(*size))
    return wrong(launch) << "has the size '" << text
                         << "'; needs a sum of products of dimensions and numbers, none negative";
  return *size;
}

LogicalResult LaunchReader::readNumbers(LaunchOp launch, runtime::Step &step) {
  for (auto text : launch.getGrid().getAsValueRange<StringAttr>()) {
    auto [extent, tile] = text.rsplit('/');
    runtime::GridAxis axis;
    FailureOr<Size> size = readSize(launch, extent);
    if (failed(size))
      return failure();
    axis.extent = *size;
    if (tile.getAsInteger(10, axis.divisor) || axis.divisor < 1)
      return wrong(launch) << "has a grid axis '" << text << "' without a tile";
    step.grid.push_back(axis);
  }
  StringRef schedule = launch.getSchedule();
  if (schedule != "serial" && schedule != "even" && schedule != "dynamic")
    return wrong(launch) << "has a schedule '" << schedule
                         << "'; known are serial, even and dynamic";
  step.schedule = schedule == "serial" ? runtime::Schedule::serial
                  : schedule == "even" ? runtime::Schedule::even
                                       : runtime::Schedule::dynamic;
  std::pair<StringRef, Size *> sizes[] = {{launch.getScratch(), &step.scratch},
                                          {launch.getFlops(), &step.flops},
                                          {launch.getBytes(), &step.bytes},
                                          {launch.getAttention(), &step.attention}};
  for (auto [text, into] : sizes) {
    FailureOr<Size> size = readSize(launch, text);
    if (failed(size))
      return failure();
    *into = *size;
  }
  return success();
}

//===-- Operands ------------------------------------------------------------------------------===//

FailureOr<Operand> LaunchReader::readOperand(Place place, Attribute attribute) {
  if (auto text = dyn_cast<StringAttr>(attribute)) {
    auto [name, index] = text.getValue().split(':');
    for (auto [source, sourceName] : sources) {
      Operand operand{source, 0};
      if (sourceName == name && (index.empty() || !index.getAsInteger(10, operand.index)) &&
          runtime::holds(program, operand))
        return operand;
    }
  }
  if (auto param = dyn_cast<DictionaryAttr>(attribute))
    return readParam(place, param);
  if (auto value = dyn_cast<DenseElementsAttr>(attribute))
    return readConstant(place, value);
  return wrong(place.launch) << "has " << attribute << " as operand " << place.index
                             << ", which is no place of the program";
}

FailureOr<Operand> LaunchReader::readParam(Place place, DictionaryAttr attribute) {
  auto name = attribute.getAs<FlatSymbolRefAttr>("param");
  auto typeAttr = attribute.getAs<TypeAttr>("type");
  auto layout = attribute.getAs<StringAttr>("layout");
  auto transposed = attribute.getAs<BoolAttr>("transposed");
  auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue()) : RankedTensorType();
  bool panels = layout && layout.getValue() == "panels";
  auto element = type ? elementTypeOf(type.getElementType()) : std::nullopt;
  if (!name || !element || !layout || (!panels && layout.getValue() != "plain"))
    return wrong(place.launch) << "has a parameter without name, type or layout: " << attribute;
  auto declared = symbols.lookup<ParamOp>(name.getValue());
  if (!declared)
    return wrong(place.launch) << "names '" << name.getValue()
                               << "', which no heddle.param declares";
  if (declared.getType() != type)
    return wrong(place.launch) << "takes '" << name.getValue() << "' as " << type
                               << ", but it is declared as " << declared.getType();
  bool turned = transposed && transposed.getValue();
  if (panels && type.getRank() != 2 && (type.getRank() != 3 || !turned))
    return wrong(place.launch) << "takes '" << name.getValue() << "' in panels, but " << type
                               << " is neither a matrix nor the transposed matrices of experts";
  if (panels && blockFormatOf(type.getElementType()) && !turned)
    return wrong(place.launch) << "takes '" << name.getValue() << "' in panels, but blocks of "
                               << type << " lie along its rows: it has to be transposed";
  runtime::ParamUse use;
  use.name = name.getValue().str();
  use.type = *element;
  use.shape.assign(type.getShape().begin(), type.getShape().end());
  use.layout = panels ? runtime::Layout::panels : runtime::Layout::plain;
  use.transposed = turned;
  for (size_t i = 0; i < program.params.size(); ++i)
    if (program.params[i] == use)
      return Operand{Source::param, uint32_t(i)};
  program.params.push_back(use);
  return Operand{Source::param, uint32_t(program.params.size() - 1)};
}

FailureOr<Operand> LaunchReader::readConstant(Place place, DenseElementsAttr value) {
  runtime::Constant constant;
  std::optional<ElementType> element = elementTypeOf(value.getElementType());
  if (!element || failed(checkConstant(place.launch.getLoc(), value.getType())))
    return wrong(place.launch) << "has a constant that no kernel takes as operand " << place.index;
  constant.type = *element;
  constant.shape.assign(value.getType().getShape().begin(), value.getType().getShape().end());
  auto append = [&](const void *bytes, size_t count) {
    auto *first = static_cast<const uint8_t *>(bytes);
    constant.bytes.insert(constant.bytes.end(), first, first + count);
  };
  if (isa<FloatType>(value.getElementType())) {
    for (const APFloat &each : value.getValues<APFloat>()) {
      APInt bits = each.bitcastToAPInt();
      append(bits.getRawData(), bits.getBitWidth() / 8);
    }
  } else {
    for (const APInt &each : value.getValues<APInt>()) {
      int32_t word = each.getBitWidth() == 1 ? each.getZExtValue() : each.getSExtValue();
      append(&word, each.getBitWidth() == 1 ? 1 : 4);
    }
  }
  program.constants.push_back(std::move(constant));
  return Operand{Source::constant, uint32_t(program.constants.size() - 1)};
}

//===-- The launch ----------------------------------------------------------------------------===//

FailureOr<runtime::Step> LaunchReader::read(LaunchOp launch) {
  runtime::Step step;
  step.symbol = launch.getKernel().str();
  step.id = launch.getId().str();
  step.joined = launch.getJoined();
  auto kernel = symbols.lookup<func::FuncOp>(step.symbol);
  if (!kernel)
    return wrong(launch) << "launches @" << step.symbol << ", which is no kernel of the module";
  if (failed(checkKernel(kernel)) || failed(readNumbers(launch, step)))
    return failure();
  // What the kernel declares counts from the dimension on that its first operand names.
  Place place{launch, kernel, 0, 0};
  if (!launch.getOperands().empty()) {
    FailureOr<Operand> table = readOperand(place, launch.getOperands()[0]);
    if (failed(table))
      return failure();
    step.operands.push_back(*table);
  }
  if (step.operands.empty() || step.operands.front().source != runtime::Source::dims)
    return wrong(launch) << "needs the table of dimensions, \"dims\", as its first operand";
  place.firstDim = step.operands.front().index;
  if (failed(checkContract(place, step)))
    return failure();
  if (failed(checkTaken(place, step.operands.front())))
    return failure();
  for (Attribute attribute : ArrayRef(launch.getOperands().getValue()).drop_front()) {
    ++place.index;
    FailureOr<Operand> operand = readOperand(place, attribute);
    if (failed(operand) || failed(checkTaken(place, *operand)))
      return failure();
    step.operands.push_back(*operand);
  }
  if (failed(checkPhase(place, step)))
    return failure();
  return step;
}

} // namespace heddle::codegen
