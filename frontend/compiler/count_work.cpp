// Walks the products of a graph. Rows that come after select_rows are those whose results are
// wanted.
#include "frontend/work.h"

#include "codegen/element_types.h"
#include "frontend/compiler/driver.h"
#include "ir/ops.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/TypeSwitch.h"

#include <cmath>

using namespace mlir;

namespace heddle {

namespace {

/// Counts of one function, operation by operation.
class Counter {
public:
  Work work;

  void count(Operation *op) {
    bool ofOutputs =
        isa<ir::SelectRowsOp>(op) ||
        llvm::any_of(op->getOperands(), [&](mlir::Value value) { return outputs.contains(value); });
    if (ofOutputs)
      outputs.insert(op->result_begin(), op->result_end());
    int64_t &weights = ofOutputs ? work.headWeights : work.layerWeights;
    llvm::TypeSwitch<Operation *>(op)
        .Case([&](ir::MatmulOp matmul) {
          if (isWeight(matmul.getRhs()))
            weights += elements(matmul.getRhs());
          else
            work.pairFlops += pairFlops(matmul);
        })
        .Case([&](ir::LinearOp linear) { weights += elements(linear.getWeight()); })
        .Case([&](ir::GatedLinearOp gated) {
          weights += elements(gated.getGate()) + elements(gated.getUp());
        })
        .Case([&](ir::ExpertMatmulOp product) {
          weights += countExperts(product.getWeight(), product.getIds());
        })
        .Case([&](ir::ExpertLinearOp linear) {
          for (mlir::Value weight : linear.getWeights())
            weights += countExperts(weight, linear.getIds());
        })
        .Case([&](ir::ProjectHeadsOp project) {
          for (mlir::Value weight :
               {project.getQueryWeight(), project.getKeyWeight(), project.getValueWeight()})
            weights += elements(weight);
        })
        .Case([&](ir::AttentionOp attention) {
          auto query = cast<RankedTensorType>(attention.getQuery().getType());
          auto value = cast<RankedTensorType>(attention.getValue().getType());
          int64_t widths =
              query.getShape().back() + value.getShape().back(); // of a query and of a value
          work.pairFlops += 2 * heads(query) * widths;
          work.causal |= attention.getCausal();
        })
        .Case([&](ir::MaskOp mask) { work.causal |= mask.getCausal(); })
        .Case([&](ir::WeightOp weight) { countWeight(weight); });
  }

private:
  static bool isWeight(mlir::Value value) { return value.getDefiningOp<ir::WeightOp>() != nullptr; }
  static int64_t elements(mlir::Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.hasStaticShape() ? type.getNumElements() : 0;
  }
  static int64_t heads(RankedTensorType type) {
    int64_t count = 1;
    for (int64_t size : type.getShape().drop_back(2))
      count *= ShapedType::isDynamic(size) ? 1 : size;
    return count;
  }

  /// Of a product of activations: the one of its sizes that calls do not decide, for every head.
  static int64_t pairFlops(ir::MatmulOp matmul) {
    auto left = cast<RankedTensorType>(matmul.getLhs().getType());
    auto result = cast<RankedTensorType>(matmul.getResult().getType());
    int64_t inner = left.getShape().back(), outer = result.getShape().back();
    if (ShapedType::isDynamic(inner) == ShapedType::isDynamic(outer))
      return 0; // not one of attention's
    return 2 * heads(result) * (ShapedType::isDynamic(inner) ? outer : inner);
  }

  /// Entries of the matrices that a token chooses of those in `weight`.
  int64_t countExperts(mlir::Value weight, mlir::Value ids) {
    auto type = cast<RankedTensorType>(weight.getType());
    int64_t experts = type.getDimSize(0);
    int64_t chosen = cast<RankedTensorType>(ids.getType()).getDimSize(1);
    auto param = weight.getDefiningOp<ir::WeightOp>();
    if (param && chosenFrom.insert(param.getParamAttr().getAttr()).second)
      work.mixtures.push_back({.bytes = bytesOf(type), .experts = experts, .chosen = chosen});
    return elements(weight) / experts * chosen;
  }

  static int64_t bytesOf(RankedTensorType type) {
    SmallVector<codegen::Size> sizes;
    for (int64_t size : type.getShape())
      sizes.push_back(codegen::constantSize(size));
    return *codegen::asConstant(codegen::storedBytes(sizes, type.getElementType()));
  }

  void countWeight(ir::WeightOp weight) {
    if (!seen.insert(weight.getParamAttr().getAttr()).second)
      return;
    int64_t bytes = bytesOf(cast<RankedTensorType>(weight.getResult().getType()));
    bool onlyLookedUp = true;
    weight->getParentOp()->walk([&](ir::WeightOp other) {
      if (other.getParamAttr() == weight.getParamAttr())
        onlyLookedUp &=
            llvm::all_of(other->getUsers(), [](Operation *user) { return isa<ir::EmbedOp>(user); });
    });
    (onlyLookedUp ? work.tableBytes : work.weightBytes) += bytes;
  }

  llvm::DenseSet<mlir::Value> outputs;
  llvm::DenseSet<StringAttr> seen, chosenFrom;
};

} // namespace

double Work::decodeBytes(int64_t sequences) const {
  auto bytes = static_cast<double>(weightBytes);
  for (const Mixture &mixture : mixtures) {
    double unchosen = 1 - double(mixture.chosen) / double(mixture.experts);
    bytes -= double(mixture.bytes) * std::pow(unchosen, double(sequences));
  }
  return bytes;
}

double Work::flops(int64_t sequences, int64_t tokens, int64_t past, int64_t count) const {
  double perSequence = double(tokens) * double(past) +
                       (causal ? double(tokens) * double(tokens + 1) / 2 // of the half it sees
                               : double(tokens) * double(tokens));
  return double(sequences) *
         (2.0 * double(layerWeights) * double(tokens) + 2.0 * double(headWeights) * double(count) +
          double(pairFlops) * perSequence);
}

Result<Work> countWork(const ModelSource &source, std::optional<WeightType> dtype,
                       std::optional<CacheElement> kv) {
  CompileOptions options;
  options.dtype = dtype;
  options.kv = kv;
  auto driver = detail::Driver::create(source, options);
  if (!driver)
    return driver.error();
  if ((*driver)->level() > Level::planned)
    return dataError(source.name() + ": is at level loops; it can be run, not measured, since its "
                                     "products are gone");
  // What the results need: rows that nobody asked for need no products behind the last attention.
  (*driver)->setFusions(passes::FusionSet::none().with("push-selection"));
  if ((*driver)->level() < Level::fused)
    if (Status status = (*driver)->lower(Level::fused, Phase::prefill); !status)
      return status.error();
  Counter counter;
  auto function = (*driver)->module().lookupSymbol<func::FuncOp>(ir::forwardName);
  function.walk<WalkOrder::PreOrder>([&](Operation *op) { counter.count(op); });
  for (Type type : function.getArgumentTypes())
    if (auto cache = dyn_cast<ir::CacheType>(type)) {
      runtime::CacheShape shape = codegen::cacheShapeOf(cache);
      counter.work.cacheBytesPerToken =
          shape.layers * (codegen::keyBytes(shape) + codegen::valueBytes(shape));
    }
  return counter.work;
}

} // namespace heddle
