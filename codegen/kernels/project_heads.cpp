// Kernel of project_heads: three products of one input, in one launch.
//
// A tile is whole heads of the queries, of the keys or of the values, for some rows. Its sums go to
// the worker's scratch, where each head has its rows at hand: there they turn, and from there they
// go to the queries or, in the cache's layout, to the cache. For neighbours among the three that
// have tiles of one shape the code of the product is emitted once, for any of their weights.
#include "codegen/kernels/kernels.h"

#include "codegen/kernels/cache_rows.h"
#include "codegen/kernels/inner_product.h"
#include "codegen/kernels/product.h"
#include "codegen/kernels/region.h"
#include "codegen/kernels/rotary.h"
#include "codegen/kernels/tiles.h"
#include "ir/ops.h"

#include <numeric>

using namespace mlir;
using namespace heddle::ir;

namespace heddle::codegen {

namespace {

constexpr unsigned parts = 3; // queries, keys, values

/// One of the three products, and the heads that its columns are.
struct Part {
  Products products;
  int64_t heads, width;
  int64_t tileHeads;

  int64_t tileColumns() const { return tileHeads * width; }
  int64_t tiles() const { return llvm::divideCeil(heads, tileHeads); }
};

Part partOf(ProjectHeadsOp op, unsigned index) {
  auto cache = cast<CacheType>(op.getCache().getType());
  auto query = op.getQuery().getType();
  int64_t heads = index == 0 ? query.getDimSize(0) : cache.getHeads();
  int64_t width = index == 0   ? query.getDimSize(2)
                  : index == 1 ? cache.getKeyWidth()
                               : cache.getValueWidth();
  return {{op, 1, 1 + index}, heads, width, 1};
}

class ProjectHeadsEmitter {
public:
  ProjectHeadsEmitter(ProjectHeadsOp op, RegisterTile registers, Lowering &lowering)
      : op(op), context(lowering.context), decode(context.phase == Phase::decode),
        kernel(lowering, op, ("project_heads_" + phaseName(context.phase)).str()), e(kernel.emit),
        registers(registers) {}

  void run() {
    Size rowCount = context.dims.sizes(op.getInput())[0];
    int64_t columns = 0;
    for (unsigned i = 0; i < parts; ++i) {
      all[i] = partOf(op, i);
      // Whole heads and whole panels, and as many of both as are summed up at once.
      int64_t heads = std::lcm(lanes, all[i].width) / all[i].width;
      int64_t wanted = registers.panels * lanes;
      all[i].tileHeads = heads * std::max<int64_t>(1, wanted / (heads * all[i].width));
      columns = std::max(columns, all[i].tileColumns());
      sums[i] = makeProduct(all[i].products, kernel);
      sumsAt = std::max(sumsAt, sums[i]->scratchBytes(registers.panels));
    }
    if (op.getTable())
      table = kernel.operand(operandNumber(op, op.getTable()));
    query = kernel.result(0);
    tileRows = decode ? rowCount : constantSize(productRows);
    Size shape[] = {tileRows, constantSize(columns)};
    sumsAt = llvm::alignTo(sumsAt, lanes * 4);
    scratch = kernel.scratchWindow(shape, e.f32(), e.index(sumsAt));
    stride = columns;

    Launch launch;
    launch.schedule = decode ? runtime::Schedule::even : runtime::Schedule::dynamic;
    launch.grid.push_back({constantSize(all[0].tiles() + all[1].tiles() + all[2].tiles()), 1});
    launch.grid.push_back({decode ? constantSize(1) : rowCount, decode ? 1 : productRows});
    launch.scratch = constantSize(sumsAt) + elementCount(shape) * constantSize(4);
    describeCost(launch, rowCount);
    Value allRows = kernel.size(rowCount);
    kernel.forTiles(launch.grid, [&](ArrayRef<Value> tile) {
      first = decode ? e.index(0) : e.mul(tile[1], productRows);
      last = decode ? allRows : e.min(e.add(first, productRows), allRows);
      emitTiles(0, tile[0]);
    });
    kernel.finish(std::move(launch));
  }

private:
  /// Whether the tiles of both parts are products of one shape, and none is cut short.
  bool areAlike(const Part &a, const Part &b) {
    return op.getBiases().empty() && a.heads % a.tileHeads == 0 && b.heads % b.tileHeads == 0 &&
           a.width == b.width &&
           a.products.weight().getElementType() == b.products.weight().getElementType();
  }

  /// Emits the tile `tile`, counted from the first of part `begin`, of that part or a later one.
  void emitTiles(unsigned begin, Value tile) {
    unsigned end = begin + 1;
    while (end < parts && areAlike(all[begin], all[end]))
      ++end;
    auto emit = [&] { end == begin + 1 ? emitTile(begin, tile) : emitAnyTile({begin, end}, tile); };
    if (end == parts)
      return emit();
    Value count = e.index(tilesOf({begin, end}));
    e.when(e.less(tile, count), emit, [&] { emitTiles(end, e.sub(tile, count)); });
  }

  /// Parts side by side: the first, and the one after the last.
  using PartRange = std::pair<unsigned, unsigned>;

  int64_t tilesOf(PartRange range) const {
    int64_t tiles = 0;
    for (unsigned i = range.first; i < range.second; ++i)
      tiles += all[i].tiles();
    return tiles;
  }

  /// Emits a tile of whichever of these parts it is of, which are alike: the product once, for any
  /// of their weights.
  void emitAnyTile(PartRange range, Value tile) {
    auto [begin, end] = range;
    auto select = [&](Value condition, Value a, Value b) -> Value {
      return arith::SelectOp::create(e.b, e.loc, condition, a, b);
    };
    Type element = all[begin].products.weight().getElementType();
    auto panelsOf = [&](unsigned i) { return kernel.flat({Ref::panels, 1 + i}, element); };
    auto startOf = [&](unsigned i) { return e.index(tilesOf({begin, i})); };
    Value weight = panelsOf(end - 1), start = startOf(end - 1);
    for (unsigned i = end - 1; i-- > begin;) {
      Value isBefore = e.less(tile, startOf(i + 1));
      weight = select(isBefore, panelsOf(i), weight);
      start = select(isBefore, startOf(i), start);
    }
    sums[begin]->takeWeight(weight);
    const Part &part = all[begin];
    Value firstHead = e.mul(e.sub(tile, start), part.tileHeads);
    int64_t columns = part.tileColumns();
    emitProduct(begin, e.div(e.mul(firstHead, part.width), lanes), columns / lanes, columns);
    finishAny(range, tile, firstHead);
  }

  /// finishHeads for the one of these parts that has `tile`, counted from the first of them.
  void finishAny(PartRange range, Value tile, Value firstHead) {
    unsigned begin = range.first;
    auto finish = [&] { finishHeads(begin, firstHead, all[begin].tileHeads); };
    if (begin + 1 == range.second)
      return finish();
    Value count = e.index(all[begin].tiles());
    e.when(e.less(tile, count), finish,
           [&] { finishAny({begin + 1, range.second}, e.sub(tile, count), firstHead); });
  }

  void emitTile(unsigned index, Value tile) {
    const Part &part = all[index];
    Value firstHead = e.mul(tile, part.tileHeads);
    auto emitHeads = [&](int64_t heads) {
      Value panel = e.div(e.mul(firstHead, part.width), lanes);
      int64_t panels = llvm::divideCeil(heads * part.width, lanes);
      emitProduct(index, panel, panels, heads * part.width);
      finishHeads(index, firstHead, heads);
    };
    int64_t rest = part.heads % part.tileHeads;
    if (rest == 0)
      return emitHeads(part.tileHeads);
    if (part.tiles() == 1)
      return emitHeads(rest);
    e.when(
        e.less(tile, e.index(part.tiles() - 1)), [&] { emitHeads(part.tileHeads); },
        [&] { emitHeads(rest); });
  }

  /// The sums of `panels` panels from `first` on, of which `columns` columns are used, to the
  /// scratch.
  void emitProduct(unsigned index, Value firstPanel, int64_t panels, int64_t columns) {
    auto emitPanels = [&](Value done, int64_t count) {
      sums[index]->enterPanels(e.add(firstPanel, done), count);
      forRowBlocks(e, registers, context.phase, first, last, [&](const RowBlock &block) {
        auto places = llvm::map_to_vector(block.rows, [](Value row) { return RowPlace{row}; });
        SmallVector<Value> vectors = sums[index]->emit(places, e.add(firstPanel, done), count);
        block.forEach(e, [&](int64_t i) {
          for (int64_t j = 0; j < count; ++j)
            store(index, vectors[i * count + j], block.rows[i], e.add(firstPanel, done),
                  e.add(done, j), j, columns);
        });
      });
    };
    int64_t whole = panels / registers.panels * registers.panels;
    if (whole == registers.panels)
      emitPanels(e.index(0), registers.panels);
    else if (whole > 0)
      e.loop(e.index(0), e.index(whole), registers.panels,
             [&](Value done) { emitPanels(done, registers.panels); });
    if (whole < panels)
      emitPanels(e.index(whole), panels - whole);
  }

  /// Panel `inTile` of the tile, the `j`-th from `panel` on; the bias is added here.
  void store(unsigned index, Value vector, Value row, Value panel, Value inTile, int64_t j,
             int64_t columns) {
    int64_t rest = columns % lanes;
    Value column = e.mul(inTile, lanes);
    auto put = [&](Value mask) {
      Value sum = vector;
      if (!op.getBiases().empty()) {
        Value bias = kernel.operand(operandNumber(op, op.getBiases()[index]));
        sum = arith::AddFOp::create(e.b, e.loc, sum,
                                    loadFloats(e, bias, {e.mul(e.add(panel, j), lanes)}, mask));
      }
      storeElements(e, sum, scratch, {e.sub(row, first), column}, mask);
    };
    if (rest == 0)
      return put(nullptr);
    // The last panel of a last tile is not whole.
    e.when(
        e.less(e.index(columns), e.add(column, lanes)), [&] { put(e.mask(e.index(rest))); },
        [&] { put(nullptr); });
  }

  /// Heads of the tile from the scratch to where they belong.
  void finishHeads(unsigned index, Value firstHead, int64_t heads) {
    const Part &part = all[index];
    Size sizes[] = {constantSize(heads), tileRows, constantSize(part.width)};
    Size strides[] = {constantSize(part.width), constantSize(stride), constantSize(1)};
    Value made = kernel.window(scratch, sizes, strides);
    bool turns = table && index < 2;
    RotaryTurn turn{e, Pairing::Interleaved, part.width, part.width, table, {}};
    if (turns) {
      turn.pairing = *op.getPairing();
      turn.dims = op.getTable().getType().getDimSize(2);
    }
    e.loop(e.index(0), e.index(heads), 1, [&](Value inTile) {
      Value head = e.add(firstHead, inTile);
      if (turns || index == 0)
        e.loop(first, last, 1, [&](Value row) {
          Value from[] = {inTile, e.sub(row, first)}, to[] = {head, row};
          turn.at = {row};
          if (!turns)
            copy(made, from, to);
          else if (index == 0)
            turn.emit(made, from, query, to);
          else
            turn.emit(made, from, made, from);
        });
      if (index > 0)
        append(index, made, head, firstHead);
    });
  }

  /// A row of a head that does not turn.
  void copy(Value made, ArrayRef<Value> from, ArrayRef<Value> to) {
    forLanes(e, e.index(all[0].width), [&](Value column, Value mask) {
      Value at[] = {from[0], from[1], column};
      Value x = mask ? e.loadMasked(made, at, mask) : e.loadVector(made, at);
      storeElements(e, x, query, {to[0], to[1], column}, mask);
    });
  }

  void append(unsigned index, Value made, Value head, Value firstHead) {
    RowsToAppend rows{index == 1 ? CacheSide::keys : CacheSide::values, made, firstHead, first};
    if (decode)
      return emitAppend(op, kernel, rows, head, first, last);
    e.loop(first, last, lanes, [&](Value row) {
      emitAppend(op, kernel, rows, head, row, e.min(e.add(row, lanes), last));
    });
  }

  void describeCost(Launch &launch, const Size &rows) {
    launch.bytes = bytesOf(context, op.getInput()) + bytesOf(context, op.getQuery());
    for (const Part &part : all) {
      const Products &products = part.products;
      launch.flops = launch.flops + rows * constantSize(2 * products.depth() * products.columns());
      launch.bytes = launch.bytes + constantSize(products.panels() * products.panelBytes());
    }
    for (CacheSide side : {CacheSide::keys, CacheSide::values})
      launch.bytes = launch.bytes + appendedBytes(op, side, rows);
    if (op.getTable())
      launch.bytes = launch.bytes + bytesOf(context, op.getTable());
  }

  mutable ProjectHeadsOp op; // its accessors are not const
  const PlanContext &context;
  bool decode;
  KernelBuilder kernel;
  Emit &e;
  RegisterTile registers;
  Part all[parts];
  std::unique_ptr<InnerProduct> sums[parts];
  Value table, query, scratch;
  Size tileRows;
  int64_t sumsAt = 0; ///< where they begin in the worker's scratch, in bytes
  int64_t stride = 0; ///< of a row of them
  Value first, last;  ///< rows of the present tile
};

struct ProjectHeadsKernel : KernelOpInterface::ExternalModel<ProjectHeadsKernel, ProjectHeadsOp> {
  bool isElided(Operation *op, unsigned index) const {
    auto project = cast<ProjectHeadsOp>(op);
    return op->getResult(index) != project.getQuery() && isElidedResult(project, index);
  }

  void plan(Operation *op, const PlanContext &context) const {
    auto project = cast<ProjectHeadsOp>(op);
    chooseTile(partOf(project, 0).products, context).write(op, planGathers(project));
  }

  LogicalResult lower(Operation *op, Lowering &lowering) const {
    auto project = cast<ProjectHeadsOp>(op);
    FailureOr<RegisterTile> registers = RegisterTile::read(partOf(project, 0).products);
    if (failed(registers))
      return failure();
    ProjectHeadsEmitter(project, *registers, lowering).run();
    return lowerGathers(project, lowering);
  }
};

} // namespace

void attachProjectionKernels(MLIRContext *context) {
  ProjectHeadsOp::attachInterface<ProjectHeadsKernel>(*context);
}

} // namespace heddle::codegen
