// Evaluators of weights, constants, rows, and the parts of attention.
#include "codegen/interp/frame.h"

#include "runtime/reference/heads.h"
#include "runtime/reference/matmul.h"
#include "runtime/reference/rotate.h"

#include "mlir/IR/BuiltinAttributes.h"

#include <fmt/format.h>

using namespace mlir;
namespace reference = heddle::runtime::reference;

namespace heddle::codegen {

/// Nothing to do: the weights are opened before a run.
static Status evalParam(ir::ParamOp, Frame &) { return {}; }

static Status evalWeight(ir::WeightOp op, Frame &frame) {
  auto found = frame.weights.find(op.getParam());
  if (found == frame.weights.end())
    return internalError("weight '" + op.getParam().str() + "' was not opened");
  frame.set(op.getResult(), found->second);
  return {};
}

static Status evalConstant(ir::ConstantOp op, Frame &frame) {
  auto elements = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!elements)
    return dataError("only dense constants have a value here");
  auto type = op.getResult().getType();
  Tensor64 tensor(Shape(type.getShape().begin(), type.getShape().end()));
  size_t i = 0;
  if (isa<FloatType>(type.getElementType())) {
    for (APFloat value : elements.getValues<APFloat>()) {
      bool inexact;
      value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &inexact);
      tensor.data[i++] = value.convertToDouble();
    }
  } else {
    bool truth = type.getElementType().isInteger(1);
    for (APInt value : elements.getValues<APInt>())
      tensor.data[i++] = truth ? double(value.getBoolValue()) : double(value.getSExtValue());
  }
  frame.set(op.getResult(), std::move(tensor));
  return {};
}

static Status evalPositions(ir::PositionsOp op, Frame &frame) {
  frame.set(op.getResult(), reference::positions(frame.rows(op.getRows()).rows));
  return {};
}

static Status evalEmbed(ir::EmbedOp op, Frame &frame) {
  Result<Tensor64> result =
      reference::embed(frame.matrix(op.getTable()), frame.tensor(op.getIds()));
  if (!result)
    return result.error();
  frame.set(op.getResult(), *std::move(result));
  return {};
}

/// An error unless `rows` has one description for each of `count` rows.
static Status checkRows(const RowsValue &rows, int64_t count) {
  return require(int64_t(rows.rows.size()) == count,
                 fmt::format("{} rows meet sequences of {}", count, rows.rows.size()));
}

static Status evalSelectRows(ir::SelectRowsOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  const RowsValue &rows = frame.rows(op.getRows());
  if (Status status = checkRows(rows, input.dim(0)); !status)
    return status;
  frame.set(op.getResult(), reference::selectRows(input, rows.batch.outputRows));
  return {};
}

static Status evalSplitHeads(ir::SplitHeadsOp op, Frame &frame) {
  frame.set(op.getResult(),
            reference::splitHeads(frame.tensor(op.getInput()), int64_t(op.getHeads())));
  return {};
}

static Status evalMergeHeads(ir::MergeHeadsOp op, Frame &frame) {
  frame.set(op.getResult(), reference::mergeHeads(frame.tensor(op.getInput())));
  return {};
}

static Status evalGatherHeads(ir::GatherHeadsOp op, Frame &frame) {
  frame.set(op.getResult(),
            reference::gatherHeads(frame.tensor(op.getInput()), int64_t(op.getHeads())));
  return {};
}

static reference::RotaryPairing pairingOf(ir::Pairing pairing) {
  return pairing == ir::Pairing::Interleaved ? reference::RotaryPairing::interleaved
                                             : reference::RotaryPairing::halfSplit;
}

/// The frequencies of a rotate or rotary_table that turns `dims` entries.
template <class Op>
static std::vector<double> frequenciesOf(Op op, int64_t dims, Frame &frame) {
  return op.getFrequencies() ? frame.tensor(op.getFrequencies()).data
                             : reference::rotaryFrequencies(op.getBase()->convertToDouble(), dims);
}

static Status evalRotate(ir::RotateOp op, Frame &frame) {
  const Tensor64 &input = frame.tensor(op.getInput());
  const Tensor64 &positions = frame.tensor(op.getPositions());
  if (Status status =
          require(positions.size() == input.dim(1),
                  fmt::format("{} positions for {} rows", positions.size(), input.dim(1)));
      !status)
    return status;
  std::vector<double> frequencies =
      frequenciesOf(op, int64_t(op.getDims().value_or(input.dim(2))), frame);
  frame.set(op.getResult(),
            reference::rotate(input, positions, frequencies, pairingOf(op.getPairing()),
                              op.getMagnitude().convertToDouble()));
  return {};
}

static Status evalRotaryTable(ir::RotaryTableOp op, Frame &frame) {
  std::vector<double> frequencies = frequenciesOf(op, op.getType().getDimSize(2), frame);
  frame.set(op.getResult(), reference::rotaryTable(frame.tensor(op.getPositions()), frequencies,
                                                   pairingOf(op.getPairing()),
                                                   op.getMagnitude().convertToDouble()));
  return {};
}

/// `heads` turned by `table`.
static Result<Tensor64> turn(const Tensor64 &heads, const Tensor64 &table, ir::Pairing pairing) {
  if (Status status =
          require(table.dim(0) == heads.dim(1),
                  fmt::format("a table of {} rows meets heads of {}", table.dim(0), heads.dim(1)));
      !status)
    return status.error();
  return reference::turn(heads, table, pairingOf(pairing));
}

static Status evalTurn(ir::TurnOp op, Frame &frame) {
  Result<Tensor64> turned =
      turn(frame.tensor(op.getInput()), frame.tensor(op.getTable()), op.getPairing());
  if (!turned)
    return turned.error();
  frame.set(op.getResult(), *std::move(turned));
  return {};
}

static Status evalMask(ir::MaskOp op, Frame &frame) {
  const Tensor64 &scores = frame.tensor(op.getScores());
  Result<reference::Visibility> visibility = visibilityOf(
      ir::maskConditions(op), op.getScores().getType().getShape(), scores.shape, frame);
  if (!visibility)
    return visibility.error();
  frame.set(op.getResult(), reference::mask(scores, *visibility));
  return {};
}

/// Adds keys and values of `op` to the cache, and sets what it gives of it.
static Status append(ir::CacheAppendInterface op, const Tensor64 &keys, const Tensor64 &values,
                     Frame &frame) {
  const RowsValue &rows = frame.rows(op.getRows());
  for (const Tensor64 *tensor : {&keys, &values})
    if (Status status = checkRows(rows, tensor->dim(1)); !status)
      return status;
  if (!frame.cache)
    return internalError("a cache is appended to that no argument gives");
  Result<reference::KeyView> view =
      frame.cache->append(int64_t(op.getLayer()), keys, values, rows.batch.sequences);
  if (!view)
    return view.error();
  frame.set(op.getAllKeys(), std::move(view->keys));
  frame.set(op.getAllValues(), std::move(view->values));
  frame.set(op.getKeyRows(), RowsValue{{}, std::move(view->rows)});
  return {};
}

static Status evalCacheAppend(ir::CacheAppendOp op, Frame &frame) {
  return append(op, frame.tensor(op.getKeys()), frame.tensor(op.getValues()), frame);
}

static Status evalProjectHeads(ir::ProjectHeadsOp op, Frame &frame) {
  auto cache = cast<ir::CacheType>(op.getCache().getType());
  const Tensor64 &input = frame.tensor(op.getInput());
  auto project = [&](unsigned which, int64_t heads, bool turns) -> Result<Tensor64> {
    mlir::Value weight = op->getOperand(1 + which);
    if (Status status = checkProduct(input, frame.shape(weight), op.getTransposeRhs()); !status)
      return status.error();
    Tensor64 product = reference::matmul(input, frame.matrix(weight), op.getTransposeRhs());
    if (!op.getBiases().empty()) {
      const Tensor64 &bias = frame.tensor(op.getBiases()[which]);
      for (size_t i = 0; i < product.data.size(); ++i)
        product.data[i] += bias.data[i % bias.data.size()];
    }
    Tensor64 split = reference::splitHeads(product, heads);
    return turns ? turn(split, frame.tensor(op.getTable()), *op.getPairing())
                 : Result<Tensor64>(std::move(split));
  };
  bool turns = bool(op.getTable());
  auto query = project(0, op.getQuery().getType().getDimSize(0), turns);
  auto keys = project(1, cache.getHeads(), turns), values = project(2, cache.getHeads(), false);
  for (const auto *each : {&query, &keys, &values})
    if (!*each)
      return each->error();
  frame.set(op.getQuery(), *std::move(query));
  return append(op, *keys, *values, frame);
}

void addAttentionEvaluators(Evaluators &table) {
  addEvaluator(table, evalParam);
  addEvaluator(table, evalWeight);
  addEvaluator(table, evalConstant);
  addEvaluator(table, evalPositions);
  addEvaluator(table, evalEmbed);
  addEvaluator(table, evalSelectRows);
  addEvaluator(table, evalSplitHeads);
  addEvaluator(table, evalMergeHeads);
  addEvaluator(table, evalGatherHeads);
  addEvaluator(table, evalRotate);
  addEvaluator(table, evalRotaryTable);
  addEvaluator(table, evalTurn);
  addEvaluator(table, evalMask);
  addEvaluator(table, evalCacheAppend);
  addEvaluator(table, evalProjectHeads);
}

} // namespace heddle::codegen
