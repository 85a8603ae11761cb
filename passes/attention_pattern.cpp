#include "passes/attention_pattern.h"

#include "passes/provenance.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

LogicalResult AttentionPattern::fail(const Twine &reason, const Twine &hint) {
  miss = {reason.str(), hint.str()};
  return failure();
}

LogicalResult AttentionPattern::match() {
  if (failed(matchOutput()) || failed(matchMasks()) || failed(matchChain()) ||
      failed(matchProduct()) || failed(matchShapes()))
    return failure();
  taken.insert_range(chain.ops);
  ops = taken.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return success();
}

//===-- From the softmax down
//-------------------------------------------------------------------===//

/// A user of `op` other than `expected`, or null.
static Operation *otherUser(Operation *op, Operation *expected) {
  for (Operation *user : op->getUsers())
    if (user != expected)
      return user;
  return nullptr;
}

static ir::MatmulOp productWith(Value lhs) {
  for (Operation *user : lhs.getUsers())
    if (auto matmul = dyn_cast<ir::MatmulOp>(user); matmul && matmul.getLhs() == lhs)
      return matmul;
  return {};
}

LogicalResult AttentionPattern::matchOutput() {
  output = productWith(softmax.getResult());
  if (!output) {
    // Something between the weights and the values: common enough to say so.
    for (Operation *user : softmax->getUsers())
      if ((isScalarCode(user) || isa<ir::MaskOp>(user)) && productWith(user->getResult(0)))
        return fail("'" + idOf(user) +
                        "' comes between the softmax and the product with the values",
                    isa<ir::MaskOp>(user) ? "masks belong before the softmax"
                                          : "change the scores before the softmax, or the "
                                            "values, or what attention gives");
    return failure();
  }
  if (softmax.getDim() != softmax.getType().getRank() - 1)
    return fail("softmax runs along dimension " + Twine(softmax.getDim()) + " of " +
                    ir::describe(softmax.getType()) + ", and keys are the last one",
                "leave the axis out");
  if (Operation *other = otherUser(softmax, output))
    return fail("the weights that '" + idOf(softmax) + "' makes are also used by '" + idOf(other) +
                    "'",
                "compute them once more for it: fused, they are never in memory");
  if (output.getRhs() == softmax.getResult() || output->getBlock() != softmax->getBlock())
    return failure();
  if (output.getTransposeRhs())
    return fail("the values come as " + ir::describe(output.getRhs().getType()) + ", transposed",
                "multiply by values [heads, keys, width] without transpose_rhs");
  value = output.getRhs();
  sink = softmax.getSink();
  taken.insert(output);
  taken.insert(softmax);
  return success();
}

/// The condition of `select(condition, scores, -inf)`, which hides scores as a mask does.
static Value hiddenBySelect(Operation *op) {
  auto select = dyn_cast_or_null<ir::SelectOp>(op);
  if (!select || shapeOf(select.getLhs()) != shapeOf(select.getResult()))
    return {};
  auto filler = dyn_cast_or_null<FloatAttr>(splatOf(select.getRhs()));
  bool hides = filler && filler.getValue().isInfinity() && filler.getValue().isNegative();
  return hides ? select.getCondition() : Value();
}

/// The operand x of an operation that may as well come before a mask: it leaves -inf as it is.
/// These are x * c and x / c for a finite c > 0, x + c and x - c for a finite c.
static Value changesNoHiddenScore(Operation *op) {
  auto binary = dyn_cast_or_null<ir::BinaryOp>(op);
  if (!binary)
    return {};
  Value scores = binary.getLhs(), other = binary.getRhs();
  bool commutes =
      binary.getKind() == ir::BinaryKind::Add || binary.getKind() == ir::BinaryKind::Mul;
  if (commutes && splatOf(scores))
    std::swap(scores, other);
  auto constant = dyn_cast_or_null<FloatAttr>(splatOf(other));
  if (!constant || !constant.getValue().isFinite() ||
      shapeOf(scores) != shapeOf(binary.getResult()))
    return {};
  bool isPositive = !constant.getValue().isNegative() && !constant.getValue().isZero();
  switch (binary.getKind()) {
  case ir::BinaryKind::Add:
  case ir::BinaryKind::Sub:
    return scores;
  case ir::BinaryKind::Mul:
  case ir::BinaryKind::Div:
    return isPositive ? scores : Value();
  default:
    return {};
  }
}

LogicalResult AttentionPattern::matchMasks() {
  // Down from the softmax, masks and what may change places with them. What is below the last mask
  // belongs to the chain.
  SmallVector<Operation *> path;
  size_t toLastMask = 0;
  scores = softmax.getInput();
  chain.result = scores;
  for (Value below = scores;;) {
    Operation *op = below.getDefiningOp();
    bool hides = op && (isa<ir::MaskOp>(op) || hiddenBySelect(op));
    Value next = hides ? op->getOperand(isa<ir::MaskOp>(op) ? 0 : 1) : changesNoHiddenScore(op);
    if (!next || op->getBlock() != softmax->getBlock())
      break;
    if (!below.hasOneUse()) {
      Operation *above = path.empty() ? softmax.getOperation() : path.back();
      if (Operation *other = otherUser(op, above); hides && other)
        return fail("the scores of '" + idOf(op) + "' are also used by '" + idOf(other) + "'",
                    "compute them once more for it: fused, they are never in memory");
      break;
    }
    path.push_back(op);
    below = next;
    if (hides) {
      toLastMask = path.size();
      scores = below;
    }
  }
  path.resize(toLastMask);
  reader = path.empty() ? softmax.getOperation() : path.back();

  bool isResultKnown = false;
  for (Operation *op : path) {
    if (auto masking = dyn_cast<ir::MaskOp>(op)) {
      if (failed(mask.add(masking, miss.reason)))
        return failure();
    } else if (Value condition = hiddenBySelect(op)) {
      mask.add(condition);
    } else {
      // It runs before the masks: it reads what they read.
      chain.ops.insert(op);
      if (!isResultKnown)
        chain.result = op->getResult(0);
      isResultKnown = true;
      continue;
    }
    chain.aliases[op->getResult(0)] = op->getOperand(isa<ir::MaskOp>(op) ? 0 : 1);
    taken.insert(op);
  }
  return success();
}

//===-- The chain and the product below it
//------------------------------------------------------===//

/// Whether a tensor has an element for each query and key; such tensors are what attention avoids.
static bool isLargeAsScores(Value tensor) {
  ArrayRef<int64_t> shape = shapeOf(tensor);
  return shape.size() >= 2 && shape.back() != 1 && shape[shape.size() - 2] != 1;
}

LogicalResult AttentionPattern::matchChain() {
  ArrayRef<int64_t> shape = shapeOf(scores);
  if (Operation *top = scores.getDefiningOp(); top && isScalarCode(top)) {
    if (Operation *other = otherUser(top, reader))
      return fail("the scores of '" + idOf(top) + "' are also used by '" + idOf(other) + "'",
                  "compute them once more for it: fused, they are never in memory");
    chain.ops.insert(top);
    chain.absorbProducers([&](Operation *producer) {
      Value result = producer->getResult(0);
      return !isBroadcast(shapeOf(result), shape) ||
             (isCheap(producer) && (isLargeAsScores(result) || countInputs(producer) <= 1));
    });
  }
  return success();
}

/// The side of `product` that has keys in its rows, or null.
static Value keysOf(ir::MatmulOp product) {
  if (product.getTransposeRhs())
    return product.getRhs();
  auto transpose = product.getRhs().getDefiningOp<ir::TransposeOp>();
  if (!transpose)
    return {};
  SmallVector<int64_t> permutation(transpose.getPermutation());
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  bool swapsLast = llvm::equal(permutation, llvm::seq<int64_t>(0, permutation.size()));
  return swapsLast ? transpose.getInput() : Value();
}

LogicalResult AttentionPattern::failWithoutProduct() {
  SmallVector<Value> leaves = chain.extras();
  if (chain.ops.empty())
    leaves.push_back(scores);
  for (Value leaf : leaves) {
    Operation *op = leaf.getDefiningOp();
    if (!op || shapeOf(leaf) != shapeOf(scores))
      continue;
    if (isa<ir::MaskOp>(op))
      return fail("'" + idOf(*op->user_begin()) + "' changes scores that '" + idOf(op) +
                      "' has hidden already",
                  "put the mask last, right before the softmax");
    if (isScalarCode(op) && !leaf.hasOneUse())
      for (Operation *user : op->getUsers())
        if (!chain.ops.contains(user))
          return fail("the scores of '" + idOf(op) + "' are also used by '" + idOf(user) + "'",
                      "compute them once more for it: fused, they are never in memory");
  }
  return fail("the scores of '" + idOf(softmax) + "' are not made by a product of queries and keys",
              "nothing is lost by it, if it is no attention");
}

LogicalResult AttentionPattern::matchProduct() {
  SmallVector<Value> leaves = chain.extras();
  if (scores.getDefiningOp<ir::MatmulOp>())
    leaves.push_back(scores);
  for (Value leaf : leaves) {
    auto matmul = leaf.getDefiningOp<ir::MatmulOp>();
    if (matmul && shapeOf(leaf) == shapeOf(scores) && (!product || !keysOf(product)))
      product = matmul;
  }
  if (!product)
    return failWithoutProduct();

  for (Operation *user : product->getUsers()) {
    bool reads = user == reader && product.getResult() == scores;
    if (!chain.ops.contains(user) && !reads)
      return fail("the scores of '" + idOf(product) + "' are also used by '" + idOf(user) + "'",
                  "multiply queries and keys once for each of them");
  }
  key = keysOf(product);
  if (!key)
    return fail("the keys come as " + ir::describe(product.getRhs().getType()) + ", not transposed",
                "multiply by keys [heads, keys, width] with transpose_rhs");
  query = product.getLhs();
  taken.insert(product);
  chain.products.push_back(product.getResult());

  // Whatever else has an element for each score is made on the spot, even where others use it too.
  chain.absorbProducers(
      [](Operation *producer) {
        return isCheap(producer) && isLargeAsScores(producer->getResult(0));
      },
      /*evenIfShared=*/true);
  return success();
}

//===-- Heads and shapes
//------------------------------------------------------------------------===//

/// Collects in `ops` what repeats each head of the result [.., Hkv, S, d] so that `tensor` comes of
/// it, or returns null: a gather_heads, or a repetition along a dimension of its own, [.., Hkv, S,
/// d]
/// -> [.., Hkv, 1, S, d] -> [.., Hkv, G, S, d] -> [.., Hkv * G, S, d].
static Value beforeRepetition(Value tensor, SmallVectorImpl<Operation *> &ops) {
  if (auto gather = tensor.getDefiningOp<ir::GatherHeadsOp>()) {
    ops.push_back(gather);
    return gather.getInput();
  }
  auto merge = tensor.getDefiningOp<ir::ReshapeOp>();
  auto expand = merge ? merge.getInput().getDefiningOp<ir::ExpandOp>() : ir::ExpandOp();
  auto split = expand ? expand.getInput().getDefiningOp<ir::ReshapeOp>() : ir::ReshapeOp();
  size_t rank = shapeOf(tensor).size();
  if (!split || rank < 3 || shapeOf(split.getInput()).size() != rank)
    return {};
  SmallVector<int64_t> few(shapeOf(split.getInput())), repeated(shapeOf(tensor));
  int64_t heads = few[rank - 3], allHeads = repeated[rank - 3];
  if (ShapedType::isDynamic(heads) || heads < 1 || allHeads % heads != 0)
    return {};
  repeated[rank - 3] = heads;
  SmallVector<int64_t> single(few), groups(few);
  single.insert(single.begin() + rank - 2, 1);
  groups.insert(groups.begin() + rank - 2, allHeads / heads);
  if (repeated != few || shapeOf(split.getResult()) != ArrayRef(single) ||
      shapeOf(expand.getResult()) != ArrayRef(groups))
    return {};
  ops.append({split, expand, merge});
  return split.getInput();
}

void AttentionPattern::takeHeads() {
  SmallVector<Operation *> repetitions;
  Value fewKeys = beforeRepetition(key, repetitions);
  Value fewValues = beforeRepetition(value, repetitions);
  if (!fewKeys || !fewValues || shapeOf(fewKeys).drop_back(2) != shapeOf(fewValues).drop_back(2))
    return;
  key = fewKeys;
  value = fewValues;
  taken.insert_range(repetitions);
}

/// [.., heads, rows, width] of a tensor of two dimensions or more.
static SmallVector<int64_t> withHeads(Value tensor) {
  SmallVector<int64_t> shape(shapeOf(tensor));
  if (shape.size() == 2)
    shape.insert(shape.begin(), 1);
  return shape;
}

/// Whether queries, keys and values of these shapes make a result of shape `result`.
static bool goTogether(ArrayRef<int64_t> q, ArrayRef<int64_t> k, ArrayRef<int64_t> v,
                       ArrayRef<int64_t> result) {
  if (k.size() != q.size() || k.drop_back() != v.drop_back() || q.drop_back(3) != k.drop_back(3))
    return false;
  size_t heads = q.size() - 3;
  SmallVector<int64_t> expected(q);
  expected.back() = v.back();
  bool isStatic =
      !llvm::is_contained({q[heads], q.back(), k[heads], v.back()}, ShapedType::kDynamic);
  return isStatic && q[heads] > 0 && k[heads] > 0 && q[heads] % k[heads] == 0 &&
         q.back() == k.back() && result == ArrayRef(expected);
}

LogicalResult AttentionPattern::matchShapes() {
  for (Value side : {key, value})
    if (side.getDefiningOp<ir::WeightOp>())
      return fail("keys and values must be computed, found a weight, " +
                      ir::describe(side.getType()),
                  "make them of the rows of the model, if it is attention");
  if (!cast<RankedTensorType>(query.getType()).getElementType().isF32())
    return fail("queries must be f32, found " + ir::describe(query.getType()),
                "cast keys and values to bf16, not the queries, which are rounded with them");
  takeHeads();
  if (shapeOf(scores) == shapeOf(product.getResult()) &&
      goTogether(withHeads(query), withHeads(key), withHeads(value), withHeads(output.getResult())))
    return success();
  return fail(
      "queries " + ir::describe(query.getType()) + ", keys " + ir::describe(key.getType()) +
          " and values " + ir::describe(value.getType()) + " do not go together as heads",
      "give them as [heads, rows, width] with static heads and widths, the heads of the queries a "
      "multiple of those of the keys");
}

} // namespace heddle::passes
