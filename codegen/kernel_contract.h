// What a kernel of level loops says of itself. Its code can do anything to the memory it is given,
// so the launches of a program, which may have been edited, are held to what it declares. The
// declaration is the kernel's own, and trusted like its code.
#pragma once

#include "codegen/size.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace heddle::codegen {

/// On every operand of a kernel, a dictionary that says what it takes there:
/// - `dims`: the table of dimensions, from the entry on that the launch names.
/// - `reads` or `writes`: a buffer of at least so many bytes; only slots and results are written.
/// - `panels`, `transposed`: a parameter in panels of exactly so many bytes.
/// - `cache_keys` or `cache_values`: that side of a layer, of exactly so many bytes a slot;
///   `appends` beside it: the kernel writes there.
/// - `sequences`, `rows`, `key_rows` or `output_rows`: that table of the argument with this number;
///   `records` beside it: at least so many.
///
/// Sizes name dimensions by their number in the table from that entry on, as the code reads them
/// (numberedText). So one kernel serves operations that differ in the dimension they have, and a
/// program whose dimensions are others does not fit.
inline constexpr llvm::StringLiteral takesAttrName = "heddle.takes";
/// On a kernel, a dictionary: `tiles`, its grid as extents and tiles; `scratch_bytes` of a worker.
inline constexpr llvm::StringLiteral contractAttrName = "heddle.contract";

/// An axis of a grid as `tiles` has it: `d0/32`, counted from dimension `first` on.
std::string numberedAxis(const Size &extent, int64_t tile, uint32_t first);

/// How many records the table that a kernel takes as `name` has for argument `argument`, if `dims`
/// count them.
std::optional<Size> recordCount(llvm::StringRef name, uint32_t argument,
                                llvm::ArrayRef<runtime::Dim> dims);

/// An error unless `function` is a kernel: a body, the arguments of runtime::Kernel and nothing
/// else.
mlir::LogicalResult checkKernel(mlir::func::FuncOp function);

/// The operands of a kernel that passes `checkKernel`, the table of dimensions first.
unsigned operandCount(mlir::func::FuncOp kernel);

} // namespace heddle::codegen
