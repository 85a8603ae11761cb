// What a module says of the model's arguments: which are batches of ids, of how many words.
#include "frontend/compiler/driver.h"

#include "codegen/element_types.h"
#include "ir/ops.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace heddle::detail {

namespace {

/// The argument of the model that a value is; none where it was computed.
std::optional<size_t> argumentOf(mlir::Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getArgNumber();
  return std::nullopt;
}

ModelInput::Kind kindOf(llvm::ArrayRef<Type> types, size_t index) {
  if (isa<ir::SequencesType>(types[index]))
    return ModelInput::Kind::sequences;
  if (isa<ir::CacheType>(types[index]))
    return ModelInput::Kind::cache;
  bool isBatch = index + 1 < types.size() && isa<ir::SequencesType>(types[index + 1]);
  auto tensor = dyn_cast<RankedTensorType>(types[index]);
  if (!isBatch || !tensor)
    return ModelInput::Kind::tensor;
  return tensor.getElementType().isInteger(32) && tensor.getRank() == 1 ? ModelInput::Kind::ids
                                                                        : ModelInput::Kind::vectors;
}

/// Whether what `op` masks may leave a query the keys of later positions.
template <class Op>
bool showsLater(Op op) {
  return !op.getWindow() && (!op.getCausal() || op.getPrefix().value_or(0) > 0);
}

/// Whether scores of these keys reach a softmax, or anything else that is not one of their rows,
/// without a mask that hides those of later positions.
bool isSeenAhead(mlir::Value keys) {
  SmallVector<mlir::Value> work = {keys};
  llvm::SmallDenseSet<mlir::Value> seen;
  while (!work.empty())
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (auto mask = dyn_cast<ir::MaskOp>(user)) {
        if (showsLater(mask))
          return true;
      } else if (auto attention = dyn_cast<ir::AttentionOp>(user)) {
        if (!attention.getMasked() || showsLater(attention))
          return true;
      } else if (isa<ir::SoftmaxOp, ir::ReduceOp, ir::CacheAppendInterface>(user) ||
                 user->hasTrait<OpTrait::IsTerminator>()) {
        return true;
      } else {
        for (mlir::Value result : user->getResults())
          if (seen.insert(result).second)
            work.push_back(result);
      }
    }
  return false;
}

/// The place without the colon behind it.
std::string placeWithin(Location location) {
  std::string place = placeOf(location);
  return place.empty() ? "an unknown place" : place.substr(0, place.size() - 2);
}

/// Looks at the operations that say something of the arguments: look-ups, and what uses rows.
struct Reader {
  explicit Reader(std::vector<ModelInput> &inputs) : inputs(inputs) {}

  std::vector<ModelInput> &inputs;
  std::optional<size_t> cachedRows, selectedRows;
  int64_t longest = 0;
  bool looksAhead = false;
  /// The operation that appends to each layer of the cache, and the first that is another's.
  llvm::SmallDenseMap<uint64_t, Operation *> appends;
  std::string twice;

  static void lower(int64_t &bound, int64_t to) { bound = bound == 0 ? to : std::min(bound, to); }

  void read(Operation *op) {
    if (auto append = dyn_cast<ir::CacheAppendInterface>(op)) {
      cachedRows = argumentOf(append.getRows());
      looksAhead |= isSeenAhead(append.getAllKeys());
      auto [first, isNew] = appends.try_emplace(append.getLayer(), op);
      if (!isNew && twice.empty())
        twice = "the model appends twice to layer " + std::to_string(append.getLayer()) +
                " of its cache, at " + placeWithin(first->second->getLoc()) + " and " +
                placeWithin(op->getLoc()) + ": each layer needs its own";
    }
    if (auto select = dyn_cast<ir::SelectRowsOp>(op))
      selectedRows = argumentOf(select.getRows());
    auto embed = dyn_cast<ir::EmbedOp>(op);
    if (!embed)
      return;
    int64_t words = embed.getTable().getType().getDimSize(0);
    if (auto ids = argumentOf(embed.getIds()))
      lower(inputs[*ids].vocabulary, words);
    else if (embed.getIds().getDefiningOp<ir::PositionsOp>())
      lower(longest, words);
  }
};

/// Why sessions cannot drive a model with these arguments and results; empty where they can.
std::string whyNotSessions(llvm::ArrayRef<ModelInput> inputs, size_t mainInput,
                           FunctionType function) {
  if (mainInput >= inputs.size() || inputs[mainInput].kind != ModelInput::Kind::ids)
    return "the model takes no batch of token ids, a pair of arguments (tensor<?xi32>, "
           "!heddle.sequences) whose ids an embed looks up";
  for (const ModelInput &input : inputs)
    if (input.kind == ModelInput::Kind::tensor || input.kind == ModelInput::Kind::vectors)
      return "the model takes arguments other than token ids";
  auto logits = function.getNumResults() > 0 ? dyn_cast<RankedTensorType>(function.getResult(0))
                                             : RankedTensorType();
  if (!logits || logits.getRank() != 2 || !logits.getElementType().isF32() ||
      logits.isDynamicDim(1))
    return "the first result of the model is not logits [rows, words] in f32";
  return "";
}

/// The argument whose rows the first result of a program has, if it has those of one.
std::optional<size_t> rowsOfLogits(ir::ProgramOp program) {
  auto shape =
      program.getOutputs().empty() ? ArrayAttr() : dyn_cast<ArrayAttr>(program.getOutputs()[0]);
  auto rows = shape && !shape.empty() ? dyn_cast<StringAttr>(shape[0]) : StringAttr();
  std::optional<runtime::Dim> dim =
      rows ? codegen::parseDim(rows.getValue()) : std::optional<runtime::Dim>();
  bool counted =
      dim && (dim->kind == runtime::DimKind::outputs || dim->kind == runtime::DimKind::tokens);
  return counted ? std::optional<size_t>(dim->input) : std::nullopt;
}

std::string textOf(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// What `keepSignature` wrote on `program`, which somebody may have edited.
Status readArguments(ir::ProgramOp program, Signature &signature) {
  std::vector<ModelInput> &inputs = signature.inputs;
  int64_t &longest = signature.longest;
  Attribute kept = program->getAttr(ir::argumentsAttrName);
  if (!kept)
    return {};
  auto wrong = [&](const std::string &fault) {
    return dataError(placeOf(program.getLoc()) + ir::argumentsAttrName.str() + " " + fault);
  };
  auto arguments = dyn_cast<ArrayAttr>(kept);
  if (!arguments || arguments.size() != inputs.size())
    return wrong("needs a dictionary for each of " + std::to_string(inputs.size()) + " arguments");
  for (auto [argument, input] : llvm::zip(arguments, inputs)) {
    auto said = dyn_cast<DictionaryAttr>(argument);
    if (!said)
      return wrong("has " + textOf(argument) + ", not a dictionary");
    for (NamedAttribute each : said) {
      auto name = dyn_cast<StringAttr>(each.getValue());
      auto count = dyn_cast<IntegerAttr>(each.getValue());
      bool counts = count && count.getType().isInteger(64) && count.getInt() > 0;
      if (each.getName() == "name" && name)
        input.name = name.str();
      else if (each.getName() == "words" && counts)
        input.vocabulary = count.getInt();
      else if (each.getName() == "looks_ahead" && isa<UnitAttr>(each.getValue()))
        signature.looksAhead = true;
      else if (each.getName() == "positions" && counts && longest > 0)
        return wrong("says 'positions' of two arguments");
      else if (each.getName() == "positions" && counts)
        longest = count.getInt();
      else
        return wrong("needs 'name', a string, and 'words' or 'positions', a positive i64, not " +
                     textOf(argument));
    }
  }
  return {};
}

} // namespace

/// Whether ids that the program of level loops looks up are words of the tables it looks them up
/// in: those of the launch that reads both.
static Status checkWords(ir::ProgramOp program, llvm::ArrayRef<ModelInput> inputs) {
  for (auto launch : program.getBody().getOps<ir::LaunchOp>()) {
    int64_t rows = 0;
    for (Attribute operand : launch.getOperands())
      if (auto param = dyn_cast<DictionaryAttr>(operand)) {
        auto type = param.getAs<TypeAttr>("type");
        auto table = type ? dyn_cast<RankedTensorType>(type.getValue()) : RankedTensorType();
        if (table && table.getRank() == 2 && (rows == 0 || table.getDimSize(0) < rows))
          rows = table.getDimSize(0);
      }
    for (Attribute operand : launch.getOperands()) {
      auto text = dyn_cast<StringAttr>(operand);
      size_t index = 0;
      llvm::StringRef place = text ? text.getValue() : llvm::StringRef();
      if (!place.consume_front("input:") || place.getAsInteger(10, index) || index >= inputs.size())
        continue;
      const ModelInput &input = inputs[index];
      if (rows > 0 && input.kind == ModelInput::Kind::ids && input.vocabulary > rows)
        return dataError(placeOf(program.getLoc()) + ir::argumentsAttrName.str() +
                         " says that ids are of " + std::to_string(input.vocabulary) +
                         " words, but '" + launch.getId().str() + "' looks them up in a table of " +
                         std::to_string(rows));
    }
  }
  return {};
}

Status readSignature(ModuleOp module, Signature &signature) {
  FunctionType type;
  auto forward = module.lookupSymbol<func::FuncOp>(ir::forwardName);
  ir::ProgramOp program;
  for (auto each : module.getOps<ir::ProgramOp>())
    if (!program && !each.isLoad())
      program = each;
  if (forward)
    type = forward.getFunctionType();
  else if (program)
    type = dyn_cast<FunctionType>(program.getFunction());
  else
    return dataError(placeOf(module.getLoc()) +
                     "the module needs a function @forward: it is the model");
  if (!type)
    return dataError("heddle.program needs a function type");

  for (size_t i = 0; i < type.getNumInputs(); ++i) {
    ModelInput input{.kind = kindOf(type.getInputs(), i), .name = {}, .vocabulary = 0};
    if (forward)
      if (auto name = forward.getArgAttrOfType<StringAttr>(i, ir::nameAttrName))
        input.name = name.str();
    signature.inputs.push_back(std::move(input));
  }
  Reader reader(signature.inputs);
  if (forward)
    forward.walk([&](Operation *op) { reader.read(op); });
  signature.longest = reader.longest;
  signature.looksAhead = reader.looksAhead;

  std::optional<size_t> rows = reader.cachedRows ? reader.cachedRows : reader.selectedRows;
  if (!forward) {
    rows = rowsOfLogits(program);
    if (Status status = readArguments(program, signature); !status)
      return status;
  }
  for (size_t i = 0; !rows && i < type.getNumInputs(); ++i)
    if (signature.inputs[i].kind == ModelInput::Kind::sequences)
      rows = i;
  signature.mainInput = rows && *rows > 0 ? *rows - 1 : signature.inputs.size();
  signature.whyNotSessions = whyNotSessions(signature.inputs, signature.mainInput, type);
  if (signature.whyNotSessions.empty())
    signature.whyNotSessions = reader.twice;
  for (Type input : type.getInputs())
    if (isa<ir::CacheType>(input))
      signature.cache = input;
  if (signature.whyNotSessions.empty())
    signature.words = cast<RankedTensorType>(type.getResult(0)).getDimSize(1);
  // Text of level loops that does not say so: ids are words of the logits.
  for (ModelInput &input : signature.inputs)
    if (input.kind == ModelInput::Kind::ids && input.vocabulary == 0)
      input.vocabulary = signature.words;
  if (!forward)
    if (Status fits = checkWords(program, signature.inputs); !fits)
      return fits;
  if (Attribute said = module->getAttr(ir::contextAttrName)) {
    constexpr int64_t most = int64_t{1} << 30;
    auto context = dyn_cast<IntegerAttr>(said);
    if (!context || !context.getType().isInteger(64) || context.getInt() < 1 ||
        context.getInt() > most)
      return dataError(placeOf(module.getLoc()) + ir::contextAttrName.str() +
                       " needs a number from 1 to " + std::to_string(most) + " in i64, found " +
                       textOf(said));
    signature.context = context.getInt();
  }
  if (auto name = module.getSymName())
    signature.name = name->str();
  return {};
}

void keepSignature(ModuleOp module, const Signature &signature) {
  Builder builder(module.getContext());
  SmallVector<Attribute> arguments;
  for (size_t i = 0; i < signature.inputs.size(); ++i) {
    const ModelInput &input = signature.inputs[i];
    NamedAttrList said;
    if (!input.name.empty())
      said.set("name", builder.getStringAttr(input.name));
    if (input.vocabulary > 0)
      said.set("words", builder.getI64IntegerAttr(input.vocabulary));
    if (signature.longest > 0 && i == signature.mainInput + 1)
      said.set("positions", builder.getI64IntegerAttr(signature.longest));
    if (signature.looksAhead && i == signature.mainInput + 1)
      said.set("looks_ahead", builder.getUnitAttr());
    arguments.push_back(said.getDictionary(module.getContext()));
  }
  for (auto program : module.getOps<ir::ProgramOp>())
    if (!program.isLoad())
      program->setAttr(ir::argumentsAttrName, builder.getArrayAttr(arguments));
}

} // namespace heddle::detail
