// Kernels of expert_linear: first the rows are sorted by expert, then each expert that has rows
// multiplies them, as linear does.
//
// The sorted order is a table of i32 in a temporary: for every expert where its rows begin, with
// their end behind the last; then the rows themselves, as numbers of the entries (t, j) of `ids`. A
// bucket behind the experts takes the entries whose id is none. Sorting is stable, but no result
// depends on that: every entry is a sum of its own.
//
// Decode goes through the experts one by one, each thread with its share of every one's panels: so
// all threads have the same to do, however few experts were chosen. Prefill has a tile for each
// expert and some panels.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/linear_tile.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

Products productsOf(ExpertLinearOp op) { return {op, unsigned(op.getWeights().size())}; }

/// The table of sorted rows.
struct SortedRows {
  int64_t experts, chosen;
  Size tokens;

  SortedRows(ExpertLinearOp op, const PlanContext &context)
      : experts(productsOf(op).experts()), chosen(op.getIds().getType().getDimSize(1)),
        tokens(context.dims.sizes(op.getIds())[0]) {}

  Size entries() const { return tokens * constantSize(chosen); }
  /// Experts, the bucket, the end, and a place that sorting needs.
  int64_t begins() const { return experts + 3; }
  Size bytes() const { return (entries() + constantSize(begins())) * constantSize(4); }
};

/// Sorts the entries of `ids` by counting.
class SortEmitter {
public:
  SortEmitter(ExpertLinearOp op, Lowering &lowering)
      : op(op), rows(op, lowering.context), kernel(lowering, op, "sort_by_expert"), e(kernel.emit) {
  }

  void run() {
    ids = kernel.operand(operandNumber(op, op.getIds()));
    table = kernel.flat({Ref::temporary, 0}, e.i32());
    Launch launch;
    launch.schedule = runtime::Schedule::serial;
    launch.grid.push_back({constantSize(1), 1});
    kernel.forTiles(launch.grid, [&](ArrayRef<Value>) {
      e.loop(e.index(0), e.index(rows.begins()), 1,
             [&](Value at) { e.store(e.integer(0), table, at); });
      // Counts stand two places further on: added up one behind the other they are where each
      // bucket begins, one place too far; counted up once more, where it ends.
      forEntries([&](Value, Value bucket) { next(e.add(bucket, 2)); });
      e.loop(e.index(1), e.index(rows.begins()), 1, [&](Value at) {
        Value sum = arith::AddIOp::create(e.b, e.loc, e.load(table, e.sub(at, e.index(1))),
                                          e.load(table, at));
        e.store(sum, table, at);
      });
      forEntries([&](Value entry, Value bucket) {
        Value at = e.toIndex(next(e.add(bucket, 1)));
        e.store(e.toInt(entry), table, e.add(at, rows.begins()));
      });
    });
    launch.bytes = bytesOf(kernel.context, op.getIds()) * constantSize(2) + rows.bytes();
    kernel.finish(std::move(launch));
  }

private:
  /// Counts up a number of the table; returns what it was.
  Value next(Value at) {
    Value before = e.load(table, at);
    e.store(arith::AddIOp::create(e.b, e.loc, before, e.integer(1)), table, at);
    return before;
  }

  void forEntries(llvm::function_ref<void(Value entry, Value bucket)> body) {
    e.loop(e.index(0), kernel.size(rows.tokens), 1, [&](Value token) {
      e.loop(e.index(0), e.index(rows.chosen), 1, [&](Value rank) {
        // What is no expert, negative ids among them, is at least as large as their number.
        Value id =
            arith::MinUIOp::create(e.b, e.loc, e.load(ids, {token, rank}), e.integer(rows.experts));
        body(e.add(e.mul(token, rows.chosen), rank), e.toIndex(id));
      });
    });
  }

  ExpertLinearOp op;
  SortedRows rows;
  KernelBuilder kernel;
  Emit &e;
  Value ids, table;
};

class ExpertEmitter {
public:
  ExpertEmitter(ExpertLinearOp op, const RegisterTile &registers, Lowering &lowering)
      : op(op), products(productsOf(op)), rows(op, lowering.context), registers(registers),
        decode(lowering.context.phase == Phase::decode),
        kernel(lowering, op, "expert_linear_" + phaseName(lowering.context.phase).str()),
        e(kernel.emit), tiles(products, registers, 2 + products.weights, kernel) {}

  void run() {
    table = kernel.flat({Ref::temporary, 0}, e.i32());
    entries = kernel.size(rows.entries());
    Launch launch;
    launch.scratch = constantSize(tiles.scratchBytes());
    Launch::Axis panels{constantSize(products.panels()), registers.panels};
    auto panelOf = [&](Value tile) { return e.mul(tile, registers.panels); };
    if (decode) {
      launch.grid = {panels};
      e.loop(e.index(0), e.index(rows.experts + 1), 1, [&](Value expert) {
        whenChosen(expert, [&](Value first, Value last) {
          kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
            emitTile(expert, panelOf(tile[0]), first, last);
          });
        });
      });
    } else {
      launch.schedule = runtime::Schedule::dynamic;
      launch.grid = {{constantSize(rows.experts + 1), 1}, panels};
      kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
        whenChosen(tile[0], [&](Value first, Value last) {
          emitTile(tile[0], panelOf(tile[1]), first, last);
        });
      });
    }
    describeCost(launch);
    kernel.finish(std::move(launch));
  }

private:
  /// Runs `body` with the sorted rows of an expert, or of the bucket, if there are any.
  void whenChosen(Value expert, llvm::function_ref<void(Value, Value)> body) {
    Value first = numberAt(expert), last = numberAt(e.add(expert, 1));
    e.when(e.less(first, last), [&] { body(first, last); });
  }

  /// A number of the table, kept within the entries, whatever the temporary holds.
  Value numberAt(Value at) {
    Value number = e.toIndex(e.load(table, at));
    return e.min(e.max(number, e.index(0)), entries);
  }

  void emitTile(Value expert, Value panel, Value first, Value last) {
    e.when(
        e.less(expert, e.index(rows.experts)),
        [&] {
          tiles.emit(panel, e.mul(expert, products.panels()), first, last,
                     [&](Value row) { return placeOf(row); });
        },
        [&] {
          e.loop(first, last, 1, [&](Value row) { tiles.emitNaN(panel, placeOf(row).result); });
        });
  }

  LinearTile::Place placeOf(Value row) {
    Value entry = e.min(numberAt(e.add(row, rows.begins())), e.sub(entries, e.index(1)));
    Value token = e.div(entry, rows.chosen), rank = e.rem(entry, rows.chosen);
    RowPlace both = {token, rank};
    return {op.getInput().getType().getRank() == 3 ? both : RowPlace{token}, both};
  }

  /// Decode reads the matrices that were chosen, prefill is taken to read all.
  void describeCost(Launch &launch) {
    const PlanContext &context = kernel.context;
    Size outputs = elementCount(context.dims.sizes(op.getResult()));
    launch.flops = outputs * constantSize(2 * products.depth() * products.weights);
    Size matrices = decode ? rows.entries() : constantSize(rows.experts);
    launch.bytes =
        outputs * constantSize(4) + rows.bytes() + bytesOf(context, op.getInput()) +
        matrices * constantSize(products.weights * products.panels() * products.panelBytes());
    for (Value extra : op.getExtras())
      launch.bytes = launch.bytes + bytesOf(context, extra);
  }

  mutable ExpertLinearOp op; // its accessors are not const
  Products products;
  SortedRows rows;
  RegisterTile registers;
  bool decode;
  KernelBuilder kernel;
  Emit &e;
  LinearTile tiles;
  Value table, entries;
};

struct ExpertLinearKernel : KernelOpInterface::ExternalModel<ExpertLinearKernel, ExpertLinearOp> {
  void plan(Operation *op, const PlanContext &context) const {
    chooseTile(productsOf(cast<ExpertLinearOp>(op)), context).write(op);
  }

  SmallVector<Size> temporaries(Operation *op, const PlanContext &context) const {
    return {SortedRows(cast<ExpertLinearOp>(op), context).bytes()};
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto linear = cast<ExpertLinearOp>(op);
    FailureOr<RegisterTile> registers = RegisterTile::read(productsOf(linear));
    if (failed(registers))
      return failure();
    SortEmitter(linear, lowering).run();
    ExpertEmitter(linear, *registers, lowering).run();
    return success();
  }
};

} // namespace

void attachExpertKernels(MLIRContext *context) {
  ExpertLinearOp::attachInterface<ExpertLinearKernel>(*context);
}

} // namespace heddle::codegen
