// Algebra and text of sizes. A size is kept in normal form: factors of a term ascend, terms are
// ordered by their factors, no two terms have the same ones and none is 0.
#include "codegen/size.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

#include <map>

namespace heddle::codegen {

using runtime::Dim;
using runtime::DimKind;
using runtime::SizeTerm;

static Size normalize(const std::map<std::vector<uint32_t>, int64_t> &terms) {
  Size size;
  for (const auto &[factors, coefficient] : terms)
    if (coefficient != 0)
      size.push_back({coefficient, factors});
  return size;
}

Size constantSize(int64_t value) { return value == 0 ? Size{} : Size{{value, {}}}; }

Size dimSize(uint32_t index) { return {{1, {index}}}; }

Size operator+(const Size &lhs, const Size &rhs) {
  std::map<std::vector<uint32_t>, int64_t> terms;
  for (const Size *size : {&lhs, &rhs})
    for (const SizeTerm &term : *size)
      terms[term.factors] += term.coefficient;
  return normalize(terms);
}

Size operator*(const Size &lhs, const Size &rhs) {
  std::map<std::vector<uint32_t>, int64_t> terms;
  for (const SizeTerm &a : lhs)
    for (const SizeTerm &b : rhs) {
      std::vector<uint32_t> factors = a.factors;
      factors.insert(factors.end(), b.factors.begin(), b.factors.end());
      llvm::sort(factors);
      terms[factors] += a.coefficient * b.coefficient;
    }
  return normalize(terms);
}

std::optional<int64_t> asConstant(const Size &size) {
  if (size.empty())
    return 0;
  if (size.size() == 1 && size[0].factors.empty())
    return size[0].coefficient;
  return std::nullopt;
}

static constexpr std::pair<DimKind, llvm::StringLiteral> dimKinds[] = {
    {DimKind::context, "context"}, {DimKind::tokens, "tokens"}, {DimKind::sequences, "sequences"},
    {DimKind::outputs, "outputs"}, {DimKind::keys, "keys"},     {DimKind::tensor, "tensor"}};

std::string dimName(const Dim &dim) {
  std::string name;
  for (auto [kind, text] : dimKinds)
    if (kind == dim.kind)
      name = text.str();
  if (dim.kind != DimKind::context)
    name += "@" + std::to_string(dim.input);
  if (dim.kind == DimKind::tensor)
    name += "." + std::to_string(dim.axis);
  return name;
}

std::optional<Dim> parseDim(llvm::StringRef text) {
  auto [name, place] = text.split('@');
  auto [input, axis] = place.split('.');
  for (auto [kind, kindName] : dimKinds) {
    if (kindName != name)
      continue;
    Dim dim{kind};
    if (kind == DimKind::context)
      return place.empty() ? std::optional(dim) : std::nullopt;
    if (input.getAsInteger(10, dim.input) ||
        (kind == DimKind::tensor ? axis.getAsInteger(10, dim.axis) : !axis.empty()))
      return std::nullopt;
    return dim;
  }
  return std::nullopt;
}

std::string sizeText(const Size &size, llvm::ArrayRef<Dim> dims) {
  if (size.empty())
    return "0";
  return llvm::join(llvm::map_range(size,
                                    [&](const SizeTerm &term) {
                                      std::string text;
                                      if (term.coefficient != 1 || term.factors.empty())
                                        text = std::to_string(term.coefficient);
                                      for (uint32_t factor : term.factors)
                                        text += (text.empty() ? "" : "*") + dimName(dims[factor]);
                                      return text;
                                    }),
                    " + ");
}

std::optional<Size> parseSize(llvm::StringRef text, llvm::ArrayRef<Dim> dims) {
  llvm::SmallVector<llvm::StringRef> terms, factors;
  text.split(terms, '+');
  Size size;
  for (llvm::StringRef term : terms) {
    Size product = constantSize(1);
    factors.clear();
    term.trim().split(factors, '*');
    for (llvm::StringRef factor : factors) {
      int64_t value;
      if (!factor.getAsInteger(10, value)) {
        product = product * constantSize(value);
        continue;
      }
      auto found = llvm::find_if(dims, [&](const Dim &dim) { return dimName(dim) == factor; });
      if (found == dims.end())
        return std::nullopt;
      product = product * dimSize(found - dims.begin());
    }
    size = size + product;
  }
  return size;
}

} // namespace heddle::codegen
