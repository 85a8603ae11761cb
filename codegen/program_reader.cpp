// From a program in the IR to one the runtime can run.
#include "codegen/program_reader.h"

#include "codegen/element_types.h"
#include "codegen/launch_reader.h"
#include "ir/load.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

class Reader {
public:
  explicit Reader(ProgramOp op) : op(op) {}

  FailureOr<runtime::Program> read() {
    for (auto name : op.getDims().getAsValueRange<StringAttr>()) {
      auto dim = parseDim(name);
      if (!dim)
        return op.emitOpError("has an unknown dimension '") << name << "'";
      auto same = [&](const runtime::Dim &other) { return dimName(other) == name; };
      if (llvm::any_of(program.dims, same))
        return op.emitOpError("has dimension '") << name << "' twice";
      program.dims.push_back(*dim);
    }
    if (failed(readSignature()) || failed(readSlots()))
      return failure();
    if (std::string fault = runtime::findFault(program); !fault.empty())
      return op.emitOpError("is malformed: ") << fault;
    LaunchReader reader(op, program);
    for (Operation &inner : op.getBody().front()) {
      auto launch = dyn_cast<LaunchOp>(inner);
      if (!launch)
        return inner.emitOpError("stands in a program, which holds launches alone");
      FailureOr<runtime::Step> step = reader.read(launch);
      if (failed(step))
        return failure();
      program.steps.push_back(std::move(*step));
    }
    auto isMade = [&](const runtime::ParamUse &use) {
      return llvm::any_of(program.outputs,
                          [&](const runtime::Output &output) { return output.param == use.name; });
    };
    if (auto read = llvm::find_if(program.params, isMade); read != program.params.end())
      return op.emitOpError("reads '") << read->name << "', which it makes";
    return program;
  }

private:
  FailureOr<Size> readSize(Attribute attribute) {
    auto text = dyn_cast<StringAttr>(attribute);
    std::optional<Size> size =
        text ? parseSize(text.getValue(), program.dims) : std::optional<Size>();
    if (!size || !isNatural(*size))
      return op.emitOpError("has the size ")
             << attribute << "; needs a sum of products of dimensions and numbers, none negative";
    return *size;
  }

  /// The sizes that `attribute`, a list, says for a tensor of `type`.
  FailureOr<std::vector<Size>> readShape(Attribute attribute, RankedTensorType type) {
    auto texts = dyn_cast<ArrayAttr>(attribute);
    if (!texts || int64_t(texts.size()) != type.getRank())
      return op.emitOpError("has the shape ") << attribute << " for a tensor of type " << type;
    std::vector<Size> extents;
    for (auto [text, known] : llvm::zip(texts, type.getShape())) {
      FailureOr<Size> extent = readSize(text);
      if (failed(extent))
        return failure();
      if (known != ShapedType::kDynamic && asConstant(*extent) != known)
        return op.emitOpError("has the shape ") << attribute << " for a tensor of type " << type;
      extents.push_back(*extent);
    }
    return extents;
  }

  FailureOr<runtime::Input> readInput(Type type, Attribute shape) {
    runtime::Input input;
    if (auto tensor = dyn_cast<RankedTensorType>(type)) {
      auto element = elementTypeOf(tensor.getElementType());
      if (!element || blockFormatOf(tensor.getElementType()))
        return op.emitOpError("has an argument of type ") << type << ", which no kernel takes";
      FailureOr<std::vector<Size>> extents = readShape(shape, tensor);
      if (failed(extents))
        return failure();
      input.type = *element;
      input.shape = *extents;
      return input;
    }
    auto none = dyn_cast<ArrayAttr>(shape);
    if (!none || !none.empty())
      return op.emitOpError("has the shape ") << shape << " for an argument of type " << type;
    if (isa<SequencesType>(type)) {
      input.kind = runtime::Input::Kind::sequences;
      return input;
    }
    auto cache = dyn_cast<CacheType>(type);
    if (!cache || program.hasCache)
      return op.emitOpError("has an argument of type ")
             << type << "; needs tensors, sequences and one cache at most";
    input.kind = runtime::Input::Kind::cache;
    program.hasCache = true;
    program.cache = cacheShapeOf(cache);
    return input;
  }

  LogicalResult readSignature() {
    auto type = dyn_cast<FunctionType>(op.getFunction());
    if (!type)
      return op.emitOpError("needs a function type, found ") << op.getFunction();
    if (op.getInputs().size() != type.getNumInputs())
      return op.emitOpError("has the shapes of ")
             << op.getInputs().size() << " arguments, its function takes " << type.getNumInputs();
    for (auto [input, shape] : llvm::zip(type.getInputs(), op.getInputs())) {
      FailureOr<runtime::Input> described = readInput(input, shape);
      if (failed(described))
        return failure();
      program.inputs.push_back(std::move(*described));
    }
    SmallVector<RankedTensorType> results;
    for (Type result : type.getResults())
      if (auto tensor = dyn_cast<RankedTensorType>(result))
        results.push_back(tensor);
      else if (!llvm::is_contained(type.getInputs(), result))
        return op.emitOpError("has a result of type ")
               << result << "; needs tensors, or the cache that it takes";
    if (op.getOutputs().size() != results.size())
      return op.emitOpError("has the shapes of ")
             << op.getOutputs().size() << " results, its function gives " << results.size();
    for (auto [result, shape] : llvm::zip(results, op.getOutputs())) {
      auto element = elementTypeOf(result.getElementType());
      if (!element || blockFormatOf(result.getElementType()))
        return op.emitOpError("has a result of type ") << result << ", which no kernel gives";
      FailureOr<std::vector<Size>> extents = readShape(shape, result);
      if (failed(extents))
        return failure();
      program.outputs.push_back({*element, *extents});
    }
    return readMade(results);
  }

  /// The parameters that results are the values of; see ir/load.h.
  LogicalResult readMade(ArrayRef<RankedTensorType> results) {
    if (!op.isLoad() && op.getMakes())
      return op.emitOpError("makes parameters, which @") << loadName << " alone does";
    if (!op.isLoad())
      return success();
    if (!op.getMakes() || op.getMakes()->size() != results.size() || !program.inputs.empty())
      return op.emitOpError("needs a parameter in 'makes' for each of its results, and no "
                            "arguments");
    SymbolTable symbols(op->getParentOp());
    auto names = op.getMakes()->getAsRange<FlatSymbolRefAttr>();
    for (auto [output, name, type] : llvm::zip(program.outputs, names, results)) {
      if (failed(checkMade(op, symbols, name, type)))
        return failure();
      output.param = name.getValue().str();
    }
    return checkDistinct(op, llvm::to_vector(names));
  }

  LogicalResult readSlots() {
    for (Attribute attribute : op.getSlots()) {
      runtime::Slot slot;
      auto tenants = dyn_cast<ArrayAttr>(attribute);
      if (!tenants)
        return op.emitOpError("has a slot that is no list of sizes: ") << attribute;
      for (Attribute tenant : tenants) {
        FailureOr<Size> bytes = readSize(tenant);
        if (failed(bytes))
          return failure();
        slot.tenants.push_back(*bytes);
      }
      program.slots.push_back(slot);
    }
    return success();
  }

  ProgramOp op;
  runtime::Program program;
};

} // namespace

FailureOr<runtime::Program> readProgram(ProgramOp program) { return Reader(program).read(); }

} // namespace heddle::codegen
