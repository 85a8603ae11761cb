// Tiles of products: how many rows and panels are summed up in registers.
#include "codegen/kernels/inner_product.h"

#include "codegen/plan.h"

using namespace mlir;

namespace heddle::codegen {

/// The largest weight whose panels decode reads four at a time, so that sums do not wait for each
/// other: what is so small stays in the caches. From memory one panel after another is read at the
/// memory's pace, four streams at half of it.
constexpr int64_t sideBySideBytes = 256 * 1024;
/// Rows of a tile of a product with weights in blocks, against two panels.
constexpr int64_t quantisedRows = 6;

/// Accumulators far beyond the registers would unroll into code without end.
constexpr int64_t mostInRegisters = 64;

bool comesFromMemory(const Products &products) {
  return products.panelBytes() * products.panels() * products.experts() > sideBySideBytes;
}

bool prefetchesAhead(const Products &products, Phase phase, int64_t rows) {
  if (phase != Phase::decode || !comesFromMemory(products) || rows == 1)
    return false;
  // Two weights are two streams, which the hardware follows as far as four rows need it, but for
  // lines whose weights take less than a byte each.
  bool isPacked = products.panelBytes() < lanes * products.depth();
  return rows > 4 || products.weights == 1 || isPacked;
}

/// In decode. Sums that do not fit the registers cost less than reading the weight twice.
static RegisterTile chooseDecodeTile(const Products &products, const Target &target) {
  int64_t rows = target.avx512 ? 8 : 2;
  if (comesFromMemory(products))
    return {rows, 1};
  rows = std::min<int64_t>(rows, 4);
  return {rows, rows / products.weights};
}

static RegisterTile choosePrefillTile(const Products &products, const Target &target) {
  // Weights in blocks have sums in f32 and, of the block at hand, in integers. int8 adds to the
  // former so seldom that they may wait in memory.
  if (ir::BlocksType blocks = products.blocks()) {
    if (!target.avx512)
      return {2, 1};
    return blocks.getKind() == ir::BlockKind::Int8
               ? RegisterTile{4, 4 / products.weights}
               : RegisterTile{quantisedRows, 2 / products.weights};
  }
  // 24 accumulators of 32 registers, or 6 pairs of 16: with more, they spill. Two weights come
  // together in the former, one after the other in the latter.
  return {6, target.avx512 ? 4 / products.weights : 1};
}

RegisterTile chooseTile(const Products &products, const PlanContext &context) {
  RegisterTile tile = context.phase == Phase::decode ? chooseDecodeTile(products, context.target)
                                                     : choosePrefillTile(products, context.target);
  tile.panels = std::max<int64_t>(1, std::min(tile.panels, products.panels()));
  return tile;
}

void RegisterTile::write(Operation *op, ArrayRef<NamedAttribute> others) const {
  Builder builder(op->getContext());
  SmallVector<NamedAttribute> plan(others);
  plan.push_back(builder.getNamedAttr("rows", builder.getI64IntegerAttr(rows)));
  plan.push_back(builder.getNamedAttr("panels", builder.getI64IntegerAttr(panels)));
  op->setAttr(kernelAttrName, builder.getDictionaryAttr(plan));
}

FailureOr<RegisterTile> RegisterTile::read(const Products &products) {
  Operation *op = products.op;
  auto plan = op->getAttrOfType<DictionaryAttr>(kernelAttrName);
  auto rows = plan ? plan.getAs<IntegerAttr>("rows") : IntegerAttr();
  auto panels = plan ? plan.getAs<IntegerAttr>("panels") : IntegerAttr();
  auto fits = [](IntegerAttr size) {
    return size && size.getInt() >= 1 && size.getInt() <= mostInRegisters;
  };
  if (!fits(rows) || !fits(panels) || rows.getInt() * panels.getInt() > mostInRegisters)
    return op->emitOpError("needs a plan of rows and panels whose product is 1 to ")
           << mostInRegisters;
  if (ir::BlocksType blocks = products.blocks();
      blocks && blocks.rowsFor() != products.input().getElementType())
    return op->emitOpError("needs its input in ") << blocks.rowsFor();
  return RegisterTile{rows.getInt(), panels.getInt()};
}

void RowBlock::forEach(Emit &e, llvm::function_ref<void(int64_t)> body) const {
  for (auto [i, there] : llvm::enumerate(present)) {
    if (there)
      e.when(there, [&] { body(int64_t(i)); });
    else
      body(int64_t(i));
  }
}

void forRowBlocks(Emit &e, const RegisterTile &tile, Phase phase, Value first, Value last,
                  llvm::function_ref<void(const RowBlock &)> body) {
  SmallVector<int64_t> blocks = {tile.rows};
  if (tile.rows > 4 && phase == Phase::decode)
    blocks.push_back(tile.rows / 2);
  if (tile.rows > 1)
    blocks.push_back(1);
  for (auto [i, size] : llvm::enumerate(blocks)) {
    int64_t smaller = i + 1 < blocks.size() ? blocks[i + 1] : 0;
    int64_t least = smaller + 1;
    Value rest = e.max(e.sub(last, first), e.index(0));
    Value end = e.add(first, e.mul(e.div(e.add(rest, size - least), size), size));
    e.loop(first, end, size, [&, size = size](Value row) {
      RowBlock block;
      for (int64_t k = 0; k < size; ++k) {
        Value at = e.add(row, k);
        bool surely = k < least;
        block.rows.push_back(surely ? at : e.min(at, e.sub(last, e.index(1))));
        block.present.push_back(surely ? Value() : e.less(at, last));
      }
      body(block);
    });
    first = end;
  }
}

std::unique_ptr<InnerProduct> makeProduct(const Products &products, KernelBuilder &kernel) {
  return products.blocks() ? makeBlockProduct(products, kernel)
                           : makeFloatProduct(products, kernel);
}

} // namespace heddle::codegen
