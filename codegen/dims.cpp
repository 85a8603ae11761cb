// Follows dynamic dimensions through a graph.
#include "codegen/dims.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

using runtime::DimKind;

LogicalResult checkBody(func::FuncOp function) {
  if (function.isExternal())
    return function.emitError("function '") << function.getName() << "' has no body";
  if (!function.getBody().hasOneBlock())
    return function.emitError("function '")
           << function.getName() << "' has branches, a model has none";
  for (Type type : function.getArgumentTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type);
        tensor && isa<BlocksType>(tensor.getElementType()))
      return function.emitError("an argument of the model is ")
             << describe(tensor) << "; only weights are in blocks";
  return success();
}

ArrayRef<Size> DimAnalysis::sizes(Value tensor) const {
  auto found = sizesOf.find(tensor);
  assert(found != sizesOf.end() && "the analysis visits every tensor");
  return found->second;
}

Size DimAnalysis::resolve(const Size &size) const {
  Size sum;
  for (const runtime::SizeTerm &term : size) {
    Size product = constantSize(term.coefficient);
    for (uint32_t factor : term.factors) {
      auto alias = aliases.find(factor);
      product = product * (alias == aliases.end() ? dimSize(factor) : resolve(alias->second));
    }
    sum = sum + product;
  }
  return sum;
}

Size DimAnalysis::dim(DimKind kind, uint32_t input, uint32_t axis) {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.kind == kind && dim.input == input && dim.axis == axis) {
      return resolve(dimSize(i));
    }
  dims.push_back({kind, input, axis});
  return dimSize(dims.size() - 1);
}

Size DimAnalysis::context() const {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.kind == DimKind::context)
      return dimSize(i);
  llvm_unreachable("visiting a cache_append adds it");
}

Size DimAnalysis::sequences(uint32_t input) const {
  for (auto [i, dim] : llvm::enumerate(dims))
    if (dim.kind == DimKind::sequences && dim.input == input)
      return dimSize(i);
  llvm_unreachable("visiting an attention adds it");
}

bool DimAnalysis::mayLackKeys(AttentionOp attention) const {
  if (!attention.getKeys())
    return false;
  if (!attention.getQueries())
    return true;
  Rows queries = rows(attention.getQueries());
  return queries.keys || queries.argument != rows(attention.getKeys()).argument;
}

void DimAnalysis::visitArguments(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    uint32_t index = argument.getArgNumber();
    if (isa<SequencesType>(argument.getType()))
      sequencesOf[argument] = {index, false};
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    if (!type)
      continue;
    bool described = index + 1 < function.getNumArguments() &&
                     isa<SequencesType>(function.getArgument(index + 1).getType());
    SmallVector<Size> sizes;
    for (auto [axis, size] : llvm::enumerate(type.getShape())) {
      if (size != ShapedType::kDynamic)
        sizes.push_back(constantSize(size));
      else if (axis == 0 && described)
        sizes.push_back(dim(DimKind::tokens, index + 1));
      else
        sizes.push_back(dim(DimKind::tensor, index, axis));
    }
    sizesOf[argument] = sizes;
  }
}

/// Records the sizes of the only result, static dimensions taken from its type.
LogicalResult DimAnalysis::set(Operation *op, SmallVector<Size> sizes) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType());
  for (auto [size, known] : llvm::zip(sizes, type.getShape()))
    if (known != ShapedType::kDynamic)
      size = constantSize(known);
  sizesOf[op->getResult(0)] = std::move(sizes);
  return success();
}

/// The plain tensor dimension that `size` is, if it is one.
static std::optional<uint32_t> tensorDim(const Size &size, ArrayRef<runtime::Dim> dims) {
  if (size.size() != 1 || size[0].coefficient != 1 || size[0].factors.size() != 1 ||
      dims[size[0].factors[0]].kind != DimKind::tensor)
    return std::nullopt;
  return size[0].factors[0];
}

static bool dependsOn(const Size &size, uint32_t dim) {
  return llvm::any_of(
      size, [&](const runtime::SizeTerm &term) { return llvm::is_contained(term.factors, dim); });
}

LogicalResult DimAnalysis::unify(Operation *op, const Size &a, const Size &b) {
  if (a == b)
    return success();
  std::optional<uint32_t> first = tensorDim(a, dims), second = tensorDim(b, dims);
  if (first && dependsOn(b, *first))
    first = std::nullopt;
  if (second && dependsOn(a, *second))
    second = std::nullopt;
  if (!first && !second)
    return op->emitOpError("cannot show that dimensions ")
           << sizeText(a, dims) << " and " << sizeText(b, dims) << " are equal";
  // The later one takes the value of the earlier, so that aliases never form a circle.
  bool takeFirst = first && (!second || *first > *second);
  aliases[takeFirst ? *first : *second] = takeFirst ? b : a;
  changed = true;
  return success();
}

Size DimAnalysis::rowCount(Value sequences) {
  Rows source = rows(sequences);
  return dim(source.keys ? DimKind::keys : DimKind::tokens, source.argument);
}

FailureOr<SmallVector<Size>> DimAnalysis::broadcast(Operation *op, ValueRange operands) {
  SmallVector<Size> result;
  for (Value operand : operands) {
    ArrayRef<Size> sizes = this->sizes(operand);
    if (sizes.size() > result.size())
      result.insert(result.begin(), sizes.size() - result.size(), constantSize(1));
    for (auto [i, size] : llvm::enumerate(sizes)) {
      Size &into = result[result.size() - sizes.size() + i];
      if (asConstant(into) == 1)
        into = size;
      else if (asConstant(size) != 1 && failed(unify(op, into, size)))
        return failure();
    }
  }
  return result;
}

LogicalResult DimAnalysis::meet(Operation *op, ValueRange tensors, ArrayRef<Size> sizes) {
  for (Value tensor : tensors) {
    ArrayRef<Size> own = this->sizes(tensor);
    for (auto [size, into] : llvm::zip_equal(own, sizes.take_back(own.size())))
      if (asConstant(size) != 1 && failed(unify(op, into, size)))
        return failure();
  }
  return success();
}

LogicalResult DimAnalysis::meetConditions(Operation *op, const MaskConditions &mask,
                                          ArrayRef<Size> scores) {
  const Size &queries = scores[scores.size() - 2], &keys = scores.back();
  auto describes = [&](const Size &rows, Value sequences, Value segments) {
    return (!sequences || succeeded(unify(op, rows, rowCount(sequences)))) &&
           (!segments || succeeded(unify(op, rows, sizes(segments)[0])));
  };
  return success(describes(queries, mask.queries, mask.querySegments) &&
                 describes(keys, mask.keys, mask.keySegments) &&
                 (!mask.mask || succeeded(meet(op, mask.mask, scores))));
}

LogicalResult DimAnalysis::visitAppend(CacheAppendInterface append) {
  Rows source = rows(append.getRows());
  if (source.keys || !isa<BlockArgument>(append.getRows()))
    return append->emitOpError("needs rows that are an argument of the function");
  Size keys = dim(DimKind::keys, source.argument);
  dim(DimKind::context);
  sequencesOf[append.getKeyRows()] = {source.argument, true};
  for (Value value : {append.getAllKeys(), append.getAllValues()}) {
    auto type = cast<RankedTensorType>(value.getType());
    sizesOf[value] = {constantSize(type.getDimSize(0)), keys, constantSize(type.getDimSize(2))};
  }
  return success();
}

LogicalResult DimAnalysis::visitExperts(Operation *op, Value ids, ValueRange extras) {
  ArrayRef<Size> input = sizes(op->getOperand(0)), chosen = sizes(ids);
  ArrayRef<Size> weight = sizes(op->getOperand(1));
  if (failed(unify(op, input[0], chosen[0])) || failed(unify(op, input.back(), weight[2])) ||
      (input.size() == 3 && failed(unify(op, input[1], chosen[1]))))
    return failure();
  SmallVector<Size> result = {input[0], chosen[1], weight[1]};
  return failed(meet(op, extras, result)) ? failure() : set(op, result);
}

LogicalResult DimAnalysis::visit(Operation *op) {
  auto of = [&](Value value) { return SmallVector<Size>(sizes(value)); };
  auto setBroadcast = [&](ValueRange operands) -> LogicalResult {
    auto sizes = broadcast(op, operands);
    return failed(sizes) ? failure() : set(op, *sizes);
  };
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case<WeightOp, ConstantOp>([&](auto source) {
        auto type = cast<RankedTensorType>(source.getType());
        return set(op, SmallVector<Size>(type.getRank()));
      })
      .Case([&](PositionsOp positions) {
        Rows source = rows(positions.getRows());
        return set(op, {dim(source.keys ? DimKind::keys : DimKind::tokens, source.argument)});
      })
      .Case([&](EmbedOp embed) {
        return set(op, {sizes(embed.getIds())[0], sizes(embed.getTable())[1]});
      })
      .Case([&](MatmulOp matmul) {
        auto lhs = of(matmul.getLhs()), rhs = of(matmul.getRhs());
        bool transposed = matmul.getTransposeRhs();
        Size inner = rhs[rhs.size() - (transposed ? 1 : 2)];
        if (failed(unify(op, lhs.back(), inner)))
          return failure();
        for (size_t i = 0; rhs.size() == lhs.size() && i + 2 < lhs.size(); ++i)
          if (failed(unify(op, lhs[i], rhs[i])))
            return failure();
        lhs.back() = rhs[rhs.size() - (transposed ? 2 : 1)];
        return set(op, lhs);
      })
      .Case<GatedMlpOp, UnaryOp, CastOp, QuantiseOp, ReduceOp, NormOp, SoftmaxOp, GatherHeadsOp>(
          [&](Operation *) { return set(op, of(op->getOperand(0))); })
      .Case([&](TopKOp top) {
        SmallVector<Size> sizes = of(top.getInput());
        sizes.back() = constantSize(top.getCount());
        sizesOf[top.getIds()] = sizes;
        return set(op, sizes);
      })
      .Case([&](ExpertMatmulOp product) { return visitExperts(op, product.getIds(), {}); })
      .Case([&](ExpertLinearOp linear) {
        return visitExperts(op, linear.getIds(), linear.getExtras());
      })
      .Case<BinaryOp, SelectOp>([&](Operation *) { return setBroadcast(op->getOperands()); })
      .Case([&](RotateOp rotate) {
        auto input = of(rotate.getInput());
        if (failed(unify(op, input[1], sizes(rotate.getPositions())[0])))
          return failure();
        return set(op, input);
      })
      .Case([&](RotaryTableOp table) { return set(op, {sizes(table.getPositions())[0], {}, {}}); })
      .Case([&](TurnOp turn) {
        auto input = of(turn.getInput());
        if (failed(unify(op, input[1], sizes(turn.getTable())[0])))
          return failure();
        return set(op, input);
      })
      .Case([&](MaskOp mask) {
        auto scores = of(mask.getScores());
        if (failed(meetConditions(op, maskConditions(mask), scores)))
          return failure();
        return set(op, scores);
      })
      .Case([&](SplitHeadsOp split) {
        return set(op, {constantSize(split.getHeads()), sizes(split.getInput())[0], {}});
      })
      .Case([&](MergeHeadsOp merge) { return set(op, {sizes(merge.getInput())[1], {}}); })
      .Case([&](CacheAppendOp append) -> LogicalResult {
        for (Value value : {append.getKeys(), append.getValues()})
          if (failed(unify(op, sizes(value)[1], rowCount(append.getRows()))))
            return failure();
        return visitAppend(append);
      })
      .Case([&](TransposeOp transpose) {
        SmallVector<Size> sizes;
        for (int64_t axis : transpose.getPermutation())
          sizes.push_back(this->sizes(transpose.getInput())[axis]);
        return set(op, sizes);
      })
      .Case([&](ReshapeOp reshape) {
        Size open = constantSize(1);
        int64_t known = 1;
        for (const Size &size : sizes(reshape.getInput()))
          open = open * size;
        for (int64_t size : reshape.getType().getShape())
          known *= size == ShapedType::kDynamic ? 1 : size;
        // Type inference has shown that the static sizes divide.
        for (runtime::SizeTerm &term : open)
          term.coefficient /= known ? known : 1;
        return set(op, SmallVector<Size>(reshape.getType().getRank(), open));
      })
      .Case([&](ExpandOp expand) {
        SmallVector<Size> result(expand.getShape().size());
        ArrayRef<Size> input = sizes(expand.getInput());
        llvm::copy(input, result.end() - input.size());
        return set(op, result);
      })
      .Case([&](ConcatOp concat) {
        SmallVector<Size> result = of(concat.getInputs().front());
        uint64_t axis = concat.getAxis();
        for (Value input : concat.getInputs().drop_front())
          for (auto [i, size] : llvm::enumerate(sizes(input))) {
            if (i == axis)
              result[i] = result[i] + size;
            else if (failed(unify(op, result[i], size)))
              return failure();
          }
        return set(op, result);
      })
      .Case([&](SliceOp slice) { return set(op, of(slice.getInput())); })
      .Case([&](SelectRowsOp select) {
        if (failed(unify(op, sizes(select.getInput())[0], rowCount(select.getRows()))))
          return failure();
        return set(op, {dim(DimKind::outputs, rows(select.getRows()).argument),
                        sizes(select.getInput())[1]});
      })
      .Case([&](MapOp map) -> LogicalResult {
        auto sizes = broadcast(op, map.getInputs());
        if (failed(sizes))
          return failure();
        // A map that repeats its inputs has dimensions of its own: they are static.
        SmallVector<Size> result(map.getType().getRank(), constantSize(1));
        llvm::copy(*sizes, result.end() - sizes->size());
        return set(op, result);
      })
      .Case<LinearOp, GatedLinearOp>([&](auto linear) -> LogicalResult {
        auto result = of(linear.getInput());
        ArrayRef<Size> weight = sizes(op->getOperand(1));
        bool transposed = linear.getTransposeRhs();
        if (failed(unify(op, result.back(), weight[transposed ? 1 : 0])))
          return failure();
        result.back() = weight[transposed ? 0 : 1];
        return failed(meet(op, linear.getExtras(), result)) ? failure() : set(op, result);
      })
      .Case([&](ProjectHeadsOp project) -> LogicalResult {
        Size rows = sizes(project.getInput())[0];
        if (failed(unify(op, rows, rowCount(project.getRows()))) ||
            (project.getTable() && failed(unify(op, rows, sizes(project.getTable())[0]))))
          return failure();
        auto query = project.getQuery().getType();
        sizesOf[project.getQuery()] = {constantSize(query.getDimSize(0)), rows,
                                       constantSize(query.getDimSize(2))};
        return visitAppend(project);
      })
      .Case([&](AttentionOp attention) {
        auto query = of(attention.getQuery()), key = of(attention.getKey());
        ArrayRef<Size> value = sizes(attention.getValue());
        size_t rows = query.size() - 2;
        for (size_t i = 0; i < rows - 1; ++i)
          if (failed(unify(op, query[i], key[i])) || failed(unify(op, key[i], value[i])))
            return failure();
        if (failed(unify(op, key[rows], value[rows])))
          return failure();
        if (attention.getKeys()) {
          Rows described = this->rows(attention.getKeys());
          if (!described.keys || mayLackKeys(attention))
            dim(DimKind::sequences, described.argument);
        }
        SmallVector<Size> scores(query);
        scores.back() = key[rows];
        if (failed(meet(op, attention.getExtras(), scores)) ||
            failed(meetConditions(op, maskConditions(attention), scores)))
          return failure();
        return set(op, query);
      })
      .Default([&](Operation *) { return op->emitOpError("has no place in a graph"); });
}

FailureOr<DimAnalysis> DimAnalysis::run(func::FuncOp function) {
  if (failed(checkBody(function)))
    return failure();
  DimAnalysis analysis;
  // Each round takes the aliases of the one before into account, until there are no new ones.
  do {
    analysis.changed = false;
    analysis.visitArguments(function);
    for (Operation &op : function.getBody().front().without_terminator())
      if (failed(analysis.visit(&op)))
        return failure();
  } while (analysis.changed);
  return analysis;
}

} // namespace heddle::codegen
