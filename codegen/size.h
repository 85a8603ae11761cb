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

/// Coefficients that do not fit are the largest int64.
Size operator+(const Size &lhs, const Size &rhs);
Size operator*(const Size &lhs, const Size &rhs);

/// Whether no coefficient is negative, so that no dimensions make it negative.
bool isNatural(const Size &size);
/// Whether `have` can be shown to be at least `need` whatever the dimensions, coefficient by
/// coefficient. `have` must be natural.
bool covers(const Size &have, const Size &need);

/// The value of a size that depends on no dimension.
std::optional<int64_t> asConstant(const Size &size);

/// The name of a dimension in text: `context`, `tokens@1`, `tensor@0.1`.
std::string dimName(const runtime::Dim &dim);
std::optional<runtime::Dim> parseDim(llvm::StringRef text);

/// `2048*tokens@1 + 64`, terms in a fixed order; `0` where there are none.
std::string sizeText(const Size &size, llvm::ArrayRef<runtime::Dim> dims);
/// The size that `text` says, negative coefficients allowed; none where it is no such polynomial.
std::optional<Size> parseSize(llvm::StringRef text, llvm::ArrayRef<runtime::Dim> dims);

/// The same with dimensions by their number in the table from entry `first` on: `2048*d0 + 64`.
std::string numberedText(const Size &size, uint32_t first = 0);
std::optional<Size> parseNumbered(llvm::StringRef text, size_t dims, uint32_t first = 0);

/// The lowest number of a dimension of `size`; none where it is constant.
std::optional<uint32_t> lowestDim(const Size &size);
/// `size` with dimension `from` as dimension `to`, and all others moved alike.
Size moveDims(const Size &size, uint32_t from, uint32_t to);

} // namespace heddle::codegen
