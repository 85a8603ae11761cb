// Names of the attributes that a plan is written in. They are all that lowering reads, so that a
// plan can be dumped, edited and run.
#pragma once

#include "llvm/ADT/StringRef.h"

namespace heddle::codegen {

/// On an operation: where each result lies, as `slot:3`, `output:0`, or `none` where no memory
/// holds it.
inline constexpr llvm::StringLiteral buffersAttrName = "heddle.buffers";
/// On an operation: the slots of its temporaries.
inline constexpr llvm::StringLiteral temporariesAttrName = "heddle.temporaries";
/// On an operation: the kernel and the tiles chosen for it, a dictionary.
inline constexpr llvm::StringLiteral kernelAttrName = "heddle.kernel";
/// On an operation: it shares the phase of the kernel before it.
inline constexpr llvm::StringLiteral joinedAttrName = "heddle.joined";
/// On the module: the instruction set, as `--isa` names it.
inline constexpr llvm::StringLiteral isaAttrName = "heddle.isa";
/// On the module: `prefill` or `decode`.
inline constexpr llvm::StringLiteral phaseAttrName = "heddle.phase";

} // namespace heddle::codegen
