// Result types of the operations of mixtures of experts.
#include "ir/ops.h"

using namespace mlir;

namespace heddle::ir {

using MaybeLocation = std::optional<Location>;
using Types = SmallVectorImpl<Type>;

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                       Adaptor adaptor, Types &types) {
  auto type = cast<RankedTensorType>(adaptor.getInput().getType());
  int64_t count = adaptor.getCount();
  if (type.getRank() < 1 || type.isDynamicDim(type.getRank() - 1))
    return emitOptionalError(location, "top_k: needs a static last dimension, found ",
                             describe(type));
  if (count < 1 || count > type.getShape().back())
    return emitOptionalError(location, "top_k: takes 1 to ", type.getShape().back(),
                             " entries of each row of ", describe(type), ", not ", count);
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = count;
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  types.push_back(RankedTensorType::get(shape, IntegerType::get(context, 32)));
  return success();
}

static bool meet(int64_t a, int64_t b) {
  return a == b || ShapedType::isDynamic(a) || ShapedType::isDynamic(b);
}

FailureOr<SmallVector<int64_t>> expertShape(MaybeLocation location, StringRef name, Type inputType,
                                            Type weightType, Type idsType) {
  auto input = cast<RankedTensorType>(inputType), weight = cast<RankedTensorType>(weightType);
  auto ids = cast<RankedTensorType>(idsType);
  if (weight.getRank() != 3 || !weight.hasStaticShape() || weight.getDimSize(0) < 1)
    return emitOptionalError(location, name, ": needs a weight [experts, out, in], found ",
                             describe(weight));
  if (ids.getRank() != 2 || ids.isDynamicDim(1) || ids.getDimSize(1) < 1)
    return emitOptionalError(location, name,
                             ": needs the ids of a fixed number of experts for each row, "
                             "[tokens, chosen], found ",
                             describe(ids));
  int64_t rank = input.getRank();
  if ((rank != 2 && rank != 3) || !meet(input.getDimSize(0), ids.getDimSize(0)) ||
      (rank == 3 && !meet(input.getDimSize(1), ids.getDimSize(1))))
    return emitOptionalError(location, name,
                             ": needs an input [tokens, in] or [tokens, chosen, in] for the ids ",
                             describe(ids), ", found ", describe(input));
  if (!meet(input.getDimSize(rank - 1), weight.getDimSize(2)))
    return emitOptionalError(location, name, ": inner dimensions differ: the input ",
                             describe(input), " has ", input.getDimSize(rank - 1), ", the experts ",
                             describe(weight), " have ", weight.getDimSize(2));
  int64_t tokens = input.isDynamicDim(0) ? ids.getDimSize(0) : input.getDimSize(0);
  return SmallVector<int64_t>{tokens, ids.getDimSize(1), weight.getDimSize(1)};
}

LogicalResult ExpertMatmulOp::inferReturnTypes(MLIRContext *context, MaybeLocation location,
                                               Adaptor adaptor, Types &types) {
  auto shape = expertShape(location, "expert_matmul", adaptor.getInput().getType(),
                           adaptor.getWeight().getType(), adaptor.getIds().getType());
  if (failed(shape))
    return failure();
  types.push_back(RankedTensorType::get(*shape, Float32Type::get(context)));
  return success();
}

} // namespace heddle::ir
