#include "passes/scalar_code.h"

#include "ir/ops.h"
#include "ir/scalar_ops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

//===-- Questions about one operation
//-----------------------------------------------------------===//

bool isScalarCode(Operation *op) { return ir::isElementwise(op) || isa<ir::MapOp>(op); }

static bool isCheapKind(ir::UnaryKind kind) {
  using enum ir::UnaryKind;
  return kind == Neg || kind == Abs || kind == Relu || kind == Square || kind == Not;
}

bool isCheap(Operation *op) {
  if (auto unary = dyn_cast<ir::UnaryOp>(op))
    return isCheapKind(unary.getKind());
  if (auto binary = dyn_cast<ir::BinaryOp>(op))
    return binary.getKind() != ir::BinaryKind::Div;
  if (auto map = dyn_cast<ir::MapOp>(op))
    return llvm::all_of(map.getBody().front().without_terminator(), [](Operation &scalar) {
      bool isArith = isa<arith::ArithDialect>(scalar.getDialect());
      return isa<math::AbsFOp>(scalar) || (isArith && !isa<arith::DivFOp>(scalar));
    });
  return isa<ir::SelectOp, ir::CastOp>(op);
}

bool isBroadcast(ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  for (size_t i = 0; i < to.size(); ++i) {
    size_t missing = to.size() - std::min(from.size(), to.size());
    int64_t size = i < missing ? 1 : from[from.size() - (to.size() - i)];
    if (size == 1 && to[i] != 1)
      return true;
  }
  return false;
}

TypedAttr splatOf(Value value) {
  auto constant = value.getDefiningOp<ir::ConstantOp>();
  if (!constant)
    return {};
  auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
  if (!elements || !elements.isSplat())
    return {};
  return cast<TypedAttr>(elements.getSplatValue<Attribute>());
}

ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

unsigned countInputs(Operation *op) {
  llvm::SmallDenseSet<Value> inputs;
  for (Value operand : op->getOperands())
    if (!splatOf(operand))
      inputs.insert(operand);
  return inputs.size();
}

//===-- The code
//--------------------------------------------------------------------------------===//

Value ScalarCode::resolve(Value operand) const {
  while (true) {
    if (auto alias = aliases.find(operand); alias != aliases.end()) {
      operand = alias->second;
      continue;
    }
    auto expand = operand.getDefiningOp<ir::ExpandOp>();
    if (!expand || llvm::is_contained(products, operand))
      return operand;
    operand = expand.getInput();
  }
}

void ScalarCode::absorbProducers(function_ref<bool(Operation *)> wanted, bool evenIfShared) {
  SmallVector<Operation *> work(ops.begin(), ops.end());
  while (!work.empty()) {
    for (Value operand : work.pop_back_val()->getOperands()) {
      Operation *producer = resolve(operand).getDefiningOp();
      if (!producer || ops.contains(producer) || !isScalarCode(producer) ||
          producer->getBlock() != ops.front()->getBlock() ||
          llvm::is_contained(products, producer->getResult(0)))
        continue;
      bool usedHere = evenIfShared || llvm::all_of(producer->getUsers(), [&](Operation *user) {
                        return ops.contains(user);
                      });
      if (!usedHere || !wanted(producer))
        continue;
      ops.insert(producer);
      work.push_back(producer);
    }
  }
}

SmallVector<Operation *> ScalarCode::sorted() const {
  SmallVector<Operation *> list(ops.begin(), ops.end());
  llvm::sort(list, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return list;
}

SmallVector<Value> ScalarCode::extras() const {
  llvm::SetVector<Value> extras;
  for (Operation *op : sorted())
    for (Value operand : op->getOperands()) {
      Value read = resolve(operand);
      Operation *producer = read.getDefiningOp();
      if (!(producer && ops.contains(producer)) && !llvm::is_contained(products, read) &&
          !splatOf(read))
        extras.insert(read);
    }
  return extras.takeVector();
}

void ScalarCode::emit(Region &region) const {
  SmallVector<Value> inputs(products);
  llvm::append_range(inputs, extras());
  OpBuilder builder(region.getContext());
  Block *block = builder.createBlock(&region);
  IRMapping scalars;
  for (Value input : inputs) {
    Type element = cast<RankedTensorType>(input.getType()).getElementType();
    scalars.map(input, block->addArgument(element, input.getLoc()));
  }
  llvm::DenseMap<TypedAttr, Value> constants;
  auto scalarOf = [&](Value operand, Location location) {
    Value read = resolve(operand);
    if (Value scalar = scalars.lookupOrNull(read))
      return scalar;
    Value &constant = constants[splatOf(read)];
    if (!constant)
      constant = arith::ConstantOp::create(builder, location, splatOf(read));
    return constant;
  };

  for (Operation *op : sorted()) {
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(scalarOf(operand, op->getLoc()));
    Value scalar;
    if (auto map = dyn_cast<ir::MapOp>(op)) {
      Block &body = map.getBody().front();
      IRMapping inner;
      inner.map(body.getArguments(), operands);
      for (Operation &instruction : body.without_terminator())
        builder.clone(instruction, inner);
      scalar = inner.lookupOrDefault(body.getTerminator()->getOperand(0));
    } else {
      scalar = ir::buildElement(builder, op, operands);
    }
    scalars.map(op->getResult(0), scalar);
  }
  ir::YieldOp::create(builder, result.getLoc(), ValueRange{scalars.lookup(resolve(result))});
}

void eraseUnused(ArrayRef<Operation *> ops) {
  llvm::SetVector<Operation *> candidates;
  auto erase = [&](Operation *op) {
    for (Value operand : op->getOperands())
      if (Operation *producer = operand.getDefiningOp())
        candidates.insert(producer);
    candidates.remove(op);
    op->erase();
  };
  SmallVector<Operation *> sorted(ops);
  llvm::sort(sorted, [](Operation *a, Operation *b) { return b->isBeforeInBlock(a); });
  // What serves two sides, keys and values, comes twice.
  sorted.erase(llvm::unique(sorted), sorted.end());
  for (Operation *op : sorted)
    if (op->use_empty())
      erase(op);
  while (!candidates.empty()) {
    Operation *op = candidates.pop_back_val();
    if (isOpTriviallyDead(op))
      erase(op);
  }
}

} // namespace heddle::passes
