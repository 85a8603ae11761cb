// From a program in the IR to one the runtime can run.
#include "codegen/program_reader.h"

#include "codegen/element_types.h"
#include "codegen/size.h"

#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

using runtime::Operand;
using runtime::Source;

constexpr std::pair<Source, llvm::StringLiteral> sources[] = {{Source::dims, "dims"},
                                                              {Source::input, "input"},
                                                              {Source::sequences, "sequences"},
                                                              {Source::rows, "rows"},
                                                              {Source::keyRows, "key_rows"},
                                                              {Source::outputRows, "output_rows"},
                                                              {Source::slot, "slot"},
                                                              {Source::cacheKeys, "cache_keys"},
                                                              {Source::cacheValues, "cache_values"},
                                                              {Source::output, "output"}};

class Reader {
public:
  Reader(ProgramOp op, const std::function<runtime::Kernel(StringRef)> &kernel)
      : op(op), kernel(kernel) {}

  Result<runtime::Program> read() {
    for (auto name : op.getDims().getAsValueRange<StringAttr>()) {
      auto dim = parseDim(name);
      if (!dim)
        return wrong("has an unknown dimension '" + name.str() + "'");
      program.dims.push_back(*dim);
    }
    for (Status status : {readSignature(), readSlots(), readLaunches()})
      if (!status)
        return status.error();
    return program;
  }

private:
  Error wrong(const std::string &what) {
    return dataError("program @" + op.getSymName().str() + " " + what);
  }

  Result<Size> size(StringRef text) {
    auto size = parseSize(text, program.dims);
    if (!size)
      return wrong("has a size '" + text.str() + "' that is no polynomial in its dimensions");
    return *size;
  }

  /// Entry `index` of a list of shapes.
  Result<std::vector<Size>> shape(ArrayAttr shapes, size_t index) {
    auto texts = index < shapes.size() ? dyn_cast<ArrayAttr>(shapes[index]) : ArrayAttr();
    if (!texts)
      return wrong("does not describe the shapes of its arguments and results");
    std::vector<Size> extents;
    for (Attribute attribute : texts) {
      auto text = dyn_cast<StringAttr>(attribute);
      auto extent = size(text ? text.getValue() : "?");
      if (!extent)
        return extent.error();
      extents.push_back(*extent);
    }
    return extents;
  }

  Status readSignature() {
    auto type = dyn_cast<FunctionType>(op.getFunction());
    if (!type)
      return wrong("has no function type");
    for (auto [i, input] : llvm::enumerate(type.getInputs())) {
      runtime::Input described;
      if (isa<SequencesType>(input)) {
        described.kind = runtime::Input::Kind::sequences;
      } else if (auto cache = dyn_cast<CacheType>(input)) {
        described.kind = runtime::Input::Kind::cache;
        program.hasCache = true;
        program.cache = {cache.getLayers(), cache.getHeads(), cache.getKeyWidth(),
                         cache.getValueWidth(), *elementTypeOf(cache.getElement())};
      } else {
        auto tensor = dyn_cast<RankedTensorType>(input);
        auto element = tensor ? elementTypeOf(tensor.getElementType()) : std::nullopt;
        if (!element)
          return wrong("has an argument of a type that no kernel takes");
        described.type = *element;
        auto extents = shape(op.getInputs(), i);
        if (!extents)
          return extents.error();
        described.shape = *extents;
      }
      program.inputs.push_back(described);
    }
    size_t index = 0;
    for (Type result : type.getResults()) {
      auto tensor = dyn_cast<RankedTensorType>(result);
      if (!tensor)
        continue;
      runtime::Output output;
      auto element = elementTypeOf(tensor.getElementType());
      auto extents = shape(op.getOutputs(), index++);
      if (!element || !extents)
        return extents ? wrong("has a result of a type that no kernel gives") : extents.error();
      output.type = *element;
      output.shape = *extents;
      program.outputs.push_back(output);
    }
    return {};
  }

  Status readSlots() {
    for (Attribute attribute : op.getSlots()) {
      runtime::Slot slot;
      auto tenants = dyn_cast<ArrayAttr>(attribute);
      if (!tenants)
        return wrong("has a slot that is no list of sizes");
      for (Attribute tenant : tenants) {
        auto text = dyn_cast<StringAttr>(tenant);
        auto bytes = size(text ? text.getValue() : "?");
        if (!bytes)
          return bytes.error();
        slot.tenants.push_back(*bytes);
      }
      program.slots.push_back(slot);
    }
    return {};
  }

  Status readLaunches() {
    for (Operation &inner : op.getBody().front()) {
      auto launch = dyn_cast<LaunchOp>(inner);
      if (!launch)
        return wrong("holds something else than launches: " + inner.getName().getStringRef().str());
      Status status = readLaunch(launch);
      if (!status)
        return status;
    }
    return {};
  }

  Status readLaunch(LaunchOp launch) {
    runtime::Step step;
    step.symbol = launch.getKernel().str();
    step.id = launch.getId().str();
    step.joined = launch.getJoined();
    if (step.joined && program.steps.empty())
      return wrong("begins with a launch that is joined, to none before it");
    step.kernel = kernel(step.symbol);
    if (!step.kernel)
      return wrong("launches '" + step.symbol + "', which is no kernel of the module");
    for (Attribute attribute : launch.getOperands()) {
      auto operand = readOperand(attribute);
      if (!operand)
        return operand.error();
      step.operands.push_back(*operand);
    }
    for (auto text : launch.getGrid().getAsValueRange<StringAttr>()) {
      auto [extent, tile] = text.rsplit('/');
      runtime::GridAxis axis;
      auto parsed = size(extent);
      if (!parsed)
        return parsed.error();
      axis.extent = *parsed;
      if (tile.getAsInteger(10, axis.divisor) || axis.divisor < 1)
        return wrong("has a grid axis '" + text.str() + "' without a tile");
      step.grid.push_back(axis);
    }
    StringRef schedule = launch.getSchedule();
    if (schedule != "serial" && schedule != "even" && schedule != "dynamic")
      return wrong("has a schedule '" + schedule.str() + "'; known are serial, even and dynamic");
    step.schedule = schedule == "serial" ? runtime::Schedule::serial
                    : schedule == "even" ? runtime::Schedule::even
                                         : runtime::Schedule::dynamic;
    std::pair<StringRef, Size *> sizes[] = {{launch.getScratch(), &step.scratch},
                                            {launch.getFlops(), &step.flops},
                                            {launch.getBytes(), &step.bytes},
                                            {launch.getAttention(), &step.attention}};
    for (auto [text, into] : sizes) {
      auto parsed = size(text);
      if (!parsed)
        return parsed.error();
      *into = *parsed;
    }
    program.steps.push_back(std::move(step));
    return {};
  }

  Result<Operand> readOperand(Attribute attribute) {
    if (auto text = dyn_cast<StringAttr>(attribute)) {
      auto [name, index] = text.getValue().split(':');
      for (auto [source, sourceName] : sources) {
        Operand operand{source, 0};
        if (sourceName == name && (index.empty() || !index.getAsInteger(10, operand.index)))
          return operand;
      }
    }
    if (auto param = dyn_cast<DictionaryAttr>(attribute))
      return readParam(param);
    if (auto value = dyn_cast<DenseElementsAttr>(attribute))
      return readConstant(value);
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return wrong("has an operand that lies nowhere: " + text);
  }

  Result<Operand> readParam(DictionaryAttr attribute) {
    auto name = attribute.getAs<FlatSymbolRefAttr>("param");
    auto typeAttr = attribute.getAs<TypeAttr>("type");
    auto layout = attribute.getAs<StringAttr>("layout");
    auto transposed = attribute.getAs<BoolAttr>("transposed");
    auto type = typeAttr ? dyn_cast<RankedTensorType>(typeAttr.getValue()) : RankedTensorType();
    auto element = type ? elementTypeOf(type.getElementType()) : std::nullopt;
    if (!name || !element || !layout ||
        (layout.getValue() != "plain" && layout.getValue() != "panels"))
      return wrong("has a parameter without name, type or layout");
    runtime::ParamUse use;
    use.name = name.getValue().str();
    use.type = *element;
    use.shape.assign(type.getShape().begin(), type.getShape().end());
    use.layout = layout.getValue() == "panels" ? runtime::Layout::panels : runtime::Layout::plain;
    use.transposed = transposed && transposed.getValue();
    for (size_t i = 0; i < program.params.size(); ++i) {
      const runtime::ParamUse &known = program.params[i];
      if (known.name == use.name && known.type == use.type && known.shape == use.shape &&
          known.layout == use.layout && known.transposed == use.transposed)
        return Operand{Source::param, uint32_t(i)};
    }
    program.params.push_back(use);
    return Operand{Source::param, uint32_t(program.params.size() - 1)};
  }

  Result<Operand> readConstant(DenseElementsAttr value) {
    runtime::Constant constant;
    auto element = elementTypeOf(value.getElementType());
    if (!element)
      return wrong("has a constant of a type that no kernel takes");
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

  ProgramOp op;
  const std::function<runtime::Kernel(StringRef)> &kernel;
  runtime::Program program;
};

} // namespace

Result<runtime::Program> readProgram(ProgramOp program,
                                     const std::function<runtime::Kernel(StringRef)> &kernel) {
  return Reader(program, kernel).read();
}

} // namespace heddle::codegen
