// fuse-projections: the products that make queries, keys and values, the rotation of both, and the
// append to the cache become one project_heads.
//
// It starts at a cache_append and goes up: keys and values are heads of products with weights, with
// a bias or without, keys turn or do not. The queries are what the keys are multiplied with, on the
// other side of attention, fused or not; they must be made of the same input in the same way. The
// project_heads takes the place of the append, where everything it reads is known.
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/product_epilogue.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/rotation.h"
#include "passes/scalar_code.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEPROJECTIONS
#include "passes/passes.h.inc"

namespace {

/// Heads as a product with a weight made them.
struct Projection {
  ir::MatmulOp product;
  Value bias; ///< null where there is none
  Rotation rotation;
  SmallVector<Operation *> ops; ///< from the product to the heads
};

/// Takes `op` for a bias added to a product: its bias.
Value biasOf(ir::BinaryOp op, Value product) {
  if (op.getKind() != ir::BinaryKind::Add)
    return {};
  Value bias = op.getLhs() == product ? op.getRhs() : op.getLhs();
  auto type = cast<RankedTensorType>(bias.getType());
  bool fits = type.getRank() == 1 && type.getDimSize(0) == shapeOf(product).back();
  return fits && bias != product ? bias : Value();
}

/// The product among the operands of `add`, if one of them is a product.
ir::MatmulOp productOf(ir::BinaryOp add) {
  auto lhs = add.getLhs().getDefiningOp<ir::MatmulOp>();
  return lhs ? lhs : add.getRhs().getDefiningOp<ir::MatmulOp>();
}

/// The projection that `heads` are; null where they are none. `miss` then says what stands in the
/// way, if it looks like one.
std::optional<Projection> matchProjection(Value heads, Miss &miss) {
  Projection found;
  found.rotation = Rotation::of(heads);
  Value value = heads;
  if (found.rotation) {
    found.ops.push_back(found.rotation.operation());
    value = found.rotation.input();
  }
  auto split = value.getDefiningOp<ir::SplitHeadsOp>();
  if (!split) {
    if (Operation *other = value.getDefiningOp(); isa_and_present<ir::NormOp>(other))
      miss = {"'" + idOf(other) + "' stands between a product and what becomes of its heads",
              "nothing is lost by it, if the model needs it there"};
    return std::nullopt;
  }
  found.ops.push_back(split);
  value = split.getInput();
  if (auto add = value.getDefiningOp<ir::BinaryOp>()) {
    found.product = productOf(add);
    found.bias = found.product ? biasOf(add, found.product.getResult()) : Value();
    if (!found.bias) {
      miss = {"'" + idOf(add) + "' is neither a product nor a product and its bias",
              "add biases of one dimension, and nothing else, before the heads are split"};
      return std::nullopt;
    }
    found.ops.push_back(add);
  } else {
    found.product = value.getDefiningOp<ir::MatmulOp>();
  }
  if (!found.product || !multipliesWeight(found.product) || found.product.getType().getRank() != 2)
    return std::nullopt;
  found.ops.push_back(found.product);
  std::reverse(found.ops.begin(), found.ops.end());
  // The heads themselves are a result; what they are made of is not.
  for (Operation *op : ArrayRef(found.ops).drop_back())
    if (!op->hasOneUse()) {
      for (Operation *user : op->getUsers())
        if (!llvm::is_contained(found.ops, user))
          miss = {"'" + idOf(op) + "' is also used by '" + idOf(user) + "'", oneReaderRemedy.str()};
      return std::nullopt;
    }
  return found;
}

/// The queries that meet `keys`, whether their attention is fused or not; null where none do.
Value queriesFor(Value keys) {
  for (Operation *user : keys.getUsers()) {
    if (auto attention = dyn_cast<ir::AttentionOp>(user); attention && attention.getKey() == keys)
      return attention.getQuery();
    if (auto product = dyn_cast<ir::MatmulOp>(user); product && product.getRhs() == keys)
      return product.getLhs();
    if (auto gather = dyn_cast<ir::GatherHeadsOp>(user))
      if (Value queries = queriesFor(gather.getResult()))
        return queries;
  }
  return {};
}

struct FuseProjections : impl::FuseProjectionsBase<FuseProjections> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      for (ir::CacheAppendOp append : llvm::to_vector(block.getOps<ir::CacheAppendOp>())) {
        Miss miss;
        if (!fuse(append, miss) && !miss.reason.empty())
          remarkMissed(getArgument(), append, miss.reason, miss.remedy);
      }
  }

  bool fuse(ir::CacheAppendOp append, Miss &miss) {
    auto keys = matchProjection(append.getKeys(), miss);
    auto values = keys ? matchProjection(append.getValues(), miss) : std::nullopt;
    Value queries = queriesFor(append.getAllKeys());
    if (!values || !queries)
      return false;
    auto query = matchProjection(queries, miss);
    if (!query)
      return false;
    Projection *all[] = {&*query, &*keys, &*values};
    if (!areAlike(all, miss) || !mayMove(append, queries, all, miss))
      return false;
    std::string shape =
        fusionShape({query->product.getRhs(), keys->product.getRhs(), values->product.getRhs()});
    if (!isDeclined(getArgument(), append, shape))
      remarkFired(getArgument(), rewrite(append, queries, all), shape);
    return true;
  }

  /// Whether the three can be one operation.
  bool areAlike(ArrayRef<Projection *> all, Miss &miss) {
    static constexpr StringLiteral names[] = {"queries", "keys", "values"};
    Projection &query = *all[0];
    for (size_t i = 1; i < all.size(); ++i) {
      Projection &other = *all[i];
      if (other.product.getLhs() != query.product.getLhs()) {
        miss = {names[0].str() + " and " + names[i].str() + " are products of two inputs",
                "nothing is lost by it, if the model means two"};
        return false;
      }
      if (bool(other.bias) != bool(query.bias)) {
        miss.reason = (names[other.bias ? i : 0] + " have a bias, " + names[other.bias ? 0 : i] +
                       " have none")
                          .str();
        miss.remedy = "give the others a bias of zeros";
        return false;
      }
      if (ir::roundingFor(other.product.getRhs()) != ir::roundingFor(query.product.getRhs()) ||
          other.product.getTransposeRhs() != query.product.getTransposeRhs()) {
        miss.reason = "the weight of the " + names[0].str() + " is " +
                      ir::describe(query.product.getRhs().getType()) + ", that of the " +
                      names[i].str() + " " + ir::describe(other.product.getRhs().getType());
        miss.remedy = "store both in one orientation, and in types that round their input alike";
        return false;
      }
    }
    if (all[2]->rotation) {
      miss = {"values turn", "turn queries and keys alone, if the model means that"};
      return false;
    }
    const Rotation &keys = all[1]->rotation;
    if (bool(keys) != bool(query.rotation) || (keys && !keys.agreesWith(query.rotation))) {
      miss = {"queries and keys do not turn by the same positions and frequencies",
              "turn both by positions of the same rows, with one base or list of frequencies"};
      return false;
    }
    return true;
  }

  /// Whether all that is read is known before the append, keys and values are used by it alone, and
  /// the queries after it.
  bool mayMove(ir::CacheAppendOp append, Value queries, ArrayRef<Projection *> all, Miss &miss) {
    for (Projection *each : all)
      for (Value read : {Value(each->product.getLhs()), Value(each->product.getRhs()), each->bias})
        if (Operation *source = read ? read.getDefiningOp() : nullptr;
            source && append->isBeforeInBlock(source)) {
          miss = {"'" + idOf(source) + "' comes after the append",
                  "make the queries before the keys and values are appended"};
          return false;
        }
    for (Projection *each : all.drop_front()) {
      Operation *last = each->ops.back();
      for (Operation *user : last->getUsers())
        if (user != append) {
          miss = {"'" + idOf(last) + "' is also used by '" + idOf(user) + "'",
                  "let it read the keys or values that the append gives"};
          return false;
        }
    }
    for (Operation *user : queries.getUsers())
      if (user->getBlock() != append->getBlock() || user->isBeforeInBlock(append)) {
        miss = {"'" + idOf(user) + "' reads the queries before the keys are in the cache",
                "append the keys and values first"};
        return false;
      }
    return true;
  }

  ir::ProjectHeadsOp rewrite(ir::CacheAppendOp append, Value queries, ArrayRef<Projection *> all) {
    SmallVector<Operation *> ops;
    SmallVector<Value> biases;
    for (Projection *each : all) {
      llvm::append_range(ops, each->ops);
      if (each->bias)
        biases.push_back(each->bias);
    }
    ops.push_back(append);
    const Rotation &rotation = all[1]->rotation;
    Value table = rotation ? rotation.table() : Value();
    OpBuilder builder(append);
    auto weight = [&](unsigned i) { return all[i]->product.getRhs(); };
    auto project = ir::ProjectHeadsOp::create(
        builder, fusedLocation(ops), queries.getType(), append.getNewCache().getType(),
        append.getAllKeys().getType(), append.getAllValues().getType(),
        append.getKeyRows().getType(), all[0]->product.getLhs(), weight(0), weight(1), weight(2),
        biases, table, append.getCache(), append.getRows(), all[0]->product.getTransposeRhs(),
        rotation ? rotation.pairing() : ir::PairingAttr(), append.getLayer());
    inheritIds(project, ops);
    queries.replaceAllUsesWith(project.getQuery());
    append->replaceAllUsesWith(project->getResults().drop_front());
    eraseUnused(ops);
    ++fused;
    return project;
  }
};

} // namespace
} // namespace heddle::passes
