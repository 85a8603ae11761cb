// The heddle dialect, its types and its enumerations.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ir/dialect.h.inc"

#include "ir/enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/attributes.h.inc"

#define GET_TYPEDEF_CLASSES
#include "ir/types.h.inc"

namespace heddle::ir {

/// Name of the discardable attribute that holds an operation's stable id.
inline constexpr llvm::StringLiteral idAttrName = "heddle.id";
/// Name of the discardable attribute that lists the ids a fused operation was made of.
inline constexpr llvm::StringLiteral fromAttrName = "heddle.from";
/// Name of the attribute of an argument of the model that holds its name.
inline constexpr llvm::StringLiteral nameAttrName = "heddle.name";
/// Name of the module attribute with the longest sequence the model is made for, in positions.
inline constexpr llvm::StringLiteral contextAttrName = "heddle.context";
/// Name of the attribute of a program that says of each argument of the model, in a dictionary, its
/// `name` and how many `words` its ids are of, where it has such.
inline constexpr llvm::StringLiteral argumentsAttrName = "heddle.arguments";
/// Name of the function that is the model.
inline constexpr llvm::StringLiteral forwardName = "forward";
/// Name of the function (at level loops the program) that is run once when the model is loaded.
inline constexpr llvm::StringLiteral loadName = "load";
/// Names of the programs that the model becomes at level loops, one of them in a module.
inline constexpr llvm::StringLiteral prefillName = "prefill";
inline constexpr llvm::StringLiteral decodeName = "decode";
/// Name of the attribute of a result of that function with the parameter that it is the value of.
inline constexpr llvm::StringLiteral madeParamAttrName = "heddle.param";

} // namespace heddle::ir
