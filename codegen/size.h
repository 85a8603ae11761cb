// Sizes that are known only when a model is called: polynomials in the dimensions of a program.
#pragma once

#include "runtime/program.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace heddle::codegen {

using runtime::Size;

/// The size `value`.
Size constantSize(int64_t value);
/// The size of dimension `index` of the program's table.
Size dimSize(uint32_t index);

Size operator+(const Size &lhs, const Size &rhs);
Size operator*(const Size &lhs, const Size &rhs);

/// The value of a size that depends on no dimension.
std::optional<int64_t> asConstant(const Size &size);

/// The name of a dimension in text: `context`, `tokens@1`, `tensor@0.1`.
std::string dimName(const runtime::Dim &dim);
std::optional<runtime::Dim> parseDim(llvm::StringRef text);

/// `2048*tokens@1 + 64`, terms in a fixed order; `0` where there are none.
std::string sizeText(const Size &size, llvm::ArrayRef<runtime::Dim> dims);
std::optional<Size> parseSize(llvm::StringRef text, llvm::ArrayRef<runtime::Dim> dims);

} // namespace heddle::codegen
