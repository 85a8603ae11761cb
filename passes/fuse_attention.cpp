// fuse-attention: what attention_pattern.h finds around a softmax becomes one attention.
//
// The pattern starts at the softmax and goes both ways: up to the one product with the values that
// uses its result; down through the masks, then through the elementwise tree below them until it
// reads a product of queries and keys. The attention takes the place of the product with the
// values, where everything it reads is known. Boolean masks are joined by `and`; queries, keys and
// values without heads get one.
#include "passes/attention_pattern.h"
#include "passes/declined.h"
#include "passes/passes.h"
#include "passes/provenance.h"
#include "passes/remarks.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEATTENTION
#include "passes/passes.h.inc"

namespace {

/// Builds what takes the place of one pattern.
class Rewrite {
public:
  explicit Rewrite(AttentionPattern &pattern)
      : pattern(pattern), builder(pattern.output), location(fusedLocation(pattern.ops)) {}

  ir::AttentionOp run() {
    Value query = withHeads(pattern.query, "queries"), key = withHeads(pattern.key, "keys"),
          value = withHeads(pattern.value, "values"), tensor = maskTensor();
    auto number = [&](std::optional<int64_t> value) {
      return value ? builder.getI64IntegerAttr(*value) : IntegerAttr();
    };
    SmallVector<int64_t> shape(shapeOf(query));
    shape.back() = shapeOf(value).back();
    const MaskConjunction &mask = pattern.mask;
    auto attention = ir::AttentionOp::create(
        builder, location, RankedTensorType::get(shape, builder.getF32Type()), query, key, value,
        pattern.chain.extras(), mask.queries, mask.keys, tensor, mask.querySegments,
        mask.keySegments, pattern.sink, mask.any, mask.causal, number(mask.window),
        number(mask.prefix), number(mask.chunk));
    pattern.chain.emit(attention.getBody());
    inheritIds(attention, pattern.ops);

    Value result = attention.getResult();
    if (result.getType() != pattern.output.getType())
      result = named<ir::ReshapeOp>("rows", result, openShape(pattern.output.getResult()));
    pattern.output.getResult().replaceAllUsesWith(result);
    eraseUnused(pattern.ops);
    return attention;
  }

private:
  /// An operation that the rewrite needs besides, called after the attention.
  template <class Op, class... Arguments>
  Value named(StringRef name, Arguments &&...arguments) {
    auto op = Op::create(builder, location, std::forward<Arguments>(arguments)...);
    if (auto id = pattern.ops.back()->getAttrOfType<StringAttr>(ir::idAttrName))
      op->setAttr(ir::idAttrName, builder.getStringAttr(id.getValue() + "." + name));
    return op.getResult();
  }

  /// The shape of `value` as reshape takes it, with `heads` in front where that is not 0.
  static SmallVector<int64_t> openShape(Value value, int64_t heads = 0) {
    SmallVector<int64_t> shape;
    if (heads)
      shape.push_back(heads);
    for (int64_t size : shapeOf(value))
      shape.push_back(ShapedType::isDynamic(size) ? -1 : size);
    return shape;
  }

  Value withHeads(Value value, StringRef name) {
    if (shapeOf(value).size() >= 3)
      return value;
    return named<ir::ReshapeOp>(name, value, openShape(value, 1));
  }

  Value maskTensor() {
    Value all;
    for (auto [i, tensor] : llvm::enumerate(pattern.mask.tensors))
      all = all ? named<ir::BinaryOp>(("mask." + Twine(i)).str(), ir::BinaryKind::And, all, tensor)
                : tensor;
    return all;
  }

  AttentionPattern &pattern;
  OpBuilder builder;
  Location location;
};

struct FuseAttention : impl::FuseAttentionBase<FuseAttention> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody())
      for (ir::SoftmaxOp softmax : llvm::to_vector(block.getOps<ir::SoftmaxOp>())) {
        AttentionPattern pattern(softmax);
        if (succeeded(pattern.match())) {
          std::string shape = fusionShape({pattern.query, pattern.key, pattern.value});
          if (isDeclined(getArgument(), pattern.output, shape))
            continue;
          remarkFired(getArgument(), Rewrite(pattern).run(), shape);
          ++fused;
        } else if (!pattern.miss.reason.empty()) {
          remarkMissed(getArgument(), softmax, pattern.miss.reason, pattern.miss.remedy);
        }
      }
  }
};

} // namespace
} // namespace heddle::passes
