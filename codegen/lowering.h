// From planned operations to kernels and launches. A kernel is built once for all operations that
// differ only in the buffers they use; this is what keeps the time to compile independent of the
// number of layers.
#pragma once

#include "codegen/emit.h"
#include "codegen/interfaces.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringMap.h"

namespace heddle::codegen {

/// Which operand of `op` it has as `value`.
unsigned operandNumber(mlir::Operation *op, mlir::Value value);

/// Whether weight operand `index` of `op` has a row for each output: where the operation says so,
/// and always where it holds the matrices of experts or rows that are looked up.
bool isTransposed(mlir::Operation *op, unsigned index);

/// An operand of a kernel, named relative to the operation it is built for.
struct Ref {
  enum Kind {
    operand,     ///< the buffer of tensor operand `index`
    panels,      ///< weight operand `index` in panels
    result,      ///< the buffer of result `index`
    temporary,   ///< buffer `index` of the operation's temporaries
    sequences,   ///< `Sequence` records of operand `index` (of type !heddle.sequences), i32
                 ///< quadruples
    rows,        ///< `Row` records of operand `index`, token rows or key view, i32 pairs
    keyRows,     ///< `Row` records of the key view of the tokens that operand `index` describes
    outputRows,  ///< indices of the wanted rows of operand `index`, i32
    cacheKeys,   ///< keys of the layer that was appended to: operand `index` is a result of the
                 ///< append, or the operation is the append itself
    cacheValues, ///< its values
  } kind;
  unsigned index = 0;

  bool operator==(const Ref &) const = default;
};

/// A kernel of an operation, run over its tiles.
struct Launch {
  std::string kernel;
  llvm::SmallVector<Ref> operands;
  struct Axis {
    Size extent;
    int64_t tile = 1;
  };
  llvm::SmallVector<Axis> grid; ///< the last axis runs fastest
  runtime::Schedule schedule = runtime::Schedule::even;
  Size scratch;   ///< bytes for each worker
  Size flops;     ///< modelled arithmetic
  Size bytes;     ///< modelled bytes read and written
  Size attention; ///< bytes of scores kept in the arena
};

class Lowering {
public:
  /// `names` counts the kernels of a name that `kernels` has.
  Lowering(mlir::ModuleOp kernels, mlir::Block &program, const PlanContext &context,
           llvm::StringMap<unsigned> &names)
      : context(context), kernels(kernels), program(program), names(names) {}

  const PlanContext &context;

  /// Lowers one operation, or repeats the launches of one that was alike.
  mlir::LogicalResult lower(KernelOpInterface op);

  /// The view of a tensor.
  const View &view(mlir::Value tensor) const { return context.views.of(tensor); }

private:
  friend class KernelBuilder;
  std::string signature(mlir::Operation *op) const;
  mlir::FailureOr<mlir::Attribute> resolve(mlir::Operation *op, Ref ref) const;
  mlir::DictionaryAttr takenAs(mlir::Operation *op, Ref ref) const;
  void declare(mlir::Operation *op, const Launch &launch);
  mlir::LogicalResult addLaunch(mlir::Operation *op, const Launch &launch, uint32_t launchFirstDim,
                                bool joined);

  mlir::ModuleOp kernels;
  mlir::Block &program;
  /// The launches of an operation, and the entry of the table of dimensions that it saw first.
  struct Known {
    uint32_t firstDim = 0;
    llvm::SmallVector<Launch> launches;
  };
  llvm::StringMap<Known> known;
  // Of the operation being lowered:
  uint32_t firstDim = 0;
  bool seesItsDims = true; ///< whether its kernel reads no dimension before `firstDim`
  llvm::SmallVector<Launch> current;
  llvm::StringMap<unsigned> &names;
};

/// Builds one kernel: a function of the table of dimensions, one flat memref for each operand, the
/// range of tiles and the worker's scratch.
class KernelBuilder {
public:
  KernelBuilder(Lowering &lowering, mlir::Operation *op, llvm::StringRef name);

  const PlanContext &context;
  mlir::OpBuilder builder;

private:
  mlir::func::FuncOp function; // before `emit`, which keeps constants at its head

public:
  Emit emit;

  /// The first tile and the one after the last, of type index.
  mlir::Value begin, end;
  /// The worker's scratch: `memref<?xi8>`.
  mlir::Value scratch;

  /// A tensor of the operation as a strided memref of what is stored; see storedType.
  mlir::Value operand(unsigned index);
  mlir::Value result(unsigned index = 0);
  /// An operand as a flat memref of `element`.
  mlir::Value flat(Ref ref, mlir::Type element);
  /// A strided window into a flat memref.
  mlir::Value window(mlir::Value flat, mlir::ArrayRef<Size> sizes, mlir::ArrayRef<Size> strides,
                     const Size &offset = {});
  /// A row-major window of `element` at `byteOffset` of the scratch.
  mlir::Value scratchWindow(mlir::ArrayRef<Size> sizes, mlir::Type element, mlir::Value byteOffset);
  /// A size as an index.
  mlir::Value size(const Size &size);

  /// Runs `body` for every tile, with the coordinates along the axes of `grid`.
  void forTiles(llvm::ArrayRef<Launch::Axis> grid,
                llvm::function_ref<void(llvm::ArrayRef<mlir::Value>)> body);

  /// Closes the kernel and adds its launch; `launch.kernel` and `launch.operands` are filled in
  /// here.
  void finish(Launch launch);

private:
  mlir::OpFoldResult fold(const Size &size);

  Lowering &lowering;
  mlir::Operation *op;
  mlir::Value dims;
  llvm::SmallVector<Ref> refs;
  llvm::SmallVector<mlir::Value> buffers;
  llvm::DenseMap<uint32_t, mlir::Value> dimValues;
};

/// The element type a tensor's elements have in memory: booleans and blocks are bytes, and bf16 is
/// its bits (i16), for LLVM cannot lower masked loads and stores of it for every processor.
mlir::Type storedType(mlir::Type element);
/// Bytes of one element in memory; not of blocks, see element_types.h.
int64_t storedBytes(mlir::Type element);
/// The number of elements of a tensor of these sizes.
Size elementCount(llvm::ArrayRef<Size> sizes);

} // namespace heddle::codegen
