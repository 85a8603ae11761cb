// Algebra and text of sizes. A size is kept in normal form: factors of a term ascend, terms are
// ordered by their factors, no two terms have the same ones and none is 0.
#include "codegen/size.h"

#include "runtime/memory.h"

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
      terms[term.factors] = runtime::saturatingAdd(terms[term.factors], term.coefficient);
  return normalize(terms);
}

Size operator*(const Size &lhs, const Size &rhs) {
  std::map<std::vector<uint32_t>, int64_t> terms;
  for (const SizeTerm &a : lhs)
    for (const SizeTerm &b : rhs) {
      std::vector<uint32_t> factors = a.factors;
      factors.insert(factors.end(), b.factors.begin(), b.factors.end());
      llvm::sort(factors);
      terms[factors] = runtime::saturatingAdd(terms[factors],
                                              runtime::saturatingMul(a.coefficient, b.coefficient));
    }
  return normalize(terms);
}

bool isNatural(const Size &size) {
  return llvm::all_of(size, [](const SizeTerm &term) { return term.coefficient >= 0; });
}

bool covers(const Size &have, const Size &need) {
  return llvm::all_of(need, [&](const SizeTerm &term) {
    auto same = llvm::find_if(have, [&](const SizeTerm &a) { return a.factors == term.factors; });
    return term.coefficient <= (same == have.end() ? 0 : same->coefficient);
  });
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

static std::string textOf(const Size &size, llvm::function_ref<std::string(uint32_t)> nameOf) {
  if (size.empty())
    return "0";
  return llvm::join(llvm::map_range(size,
                                    [&](const SizeTerm &term) {
                                      std::string text;
                                      if (term.coefficient != 1 || term.factors.empty())
                                        text = std::to_string(term.coefficient);
                                      for (uint32_t factor : term.factors)
                                        text += (text.empty() ? "" : "*") + nameOf(factor);
                                      return text;
                                    }),
                    " + ");
}

/// Reads what textOf writes; `find` gives the number of a dimension.
static std::optional<Size>
parse(llvm::StringRef text, llvm::function_ref<std::optional<uint32_t>(llvm::StringRef)> find) {
  llvm::SmallVector<llvm::StringRef> terms, factors;
  text.split(terms, '+');
  Size size;
  for (llvm::StringRef term : terms) {
    Size product = constantSize(1);
    factors.clear();
    term.trim().split(factors, '*');
    for (llvm::StringRef factor : factors) {
      int64_t value;
      std::optional<uint32_t> dim;
      if (!factor.getAsInteger(10, value))
        product = product * constantSize(value);
      else if ((dim = find(factor)))
        product = product * dimSize(*dim);
      else
        return std::nullopt;
    }
    size = size + product;
  }
  return size;
}

std::string sizeText(const Size &size, llvm::ArrayRef<Dim> dims) {
  return textOf(size, [&](uint32_t dim) { return dimName(dims[dim]); });
}

std::optional<Size> parseSize(llvm::StringRef text, llvm::ArrayRef<Dim> dims) {
  return parse(text, [&](llvm::StringRef name) -> std::optional<uint32_t> {
    auto found = llvm::find_if(dims, [&](const Dim &dim) { return dimName(dim) == name; });
    return found == dims.end() ? std::nullopt : std::optional<uint32_t>(found - dims.begin());
  });
}

std::string numberedText(const Size &size, uint32_t first) {
  return textOf(size, [&](uint32_t dim) { return "d" + std::to_string(dim - first); });
}

std::optional<Size> parseNumbered(llvm::StringRef text, size_t dims, uint32_t first) {
  return parse(text, [&](llvm::StringRef name) -> std::optional<uint32_t> {
    uint32_t dim;
    bool known = name.consume_front("d") && !name.getAsInteger(10, dim) && first < dims &&
                 dim < dims - first;
    return known ? std::optional(first + dim) : std::nullopt;
  });
}

std::optional<uint32_t> lowestDim(const Size &size) {
  std::optional<uint32_t> lowest;
  for (const runtime::SizeTerm &term : size)
    for (uint32_t dim : term.factors)
      lowest = std::min(dim, lowest.value_or(dim));
  return lowest;
}

Size moveDims(const Size &size, uint32_t from, uint32_t to) {
  Size moved = size;
  for (runtime::SizeTerm &term : moved)
    for (uint32_t &dim : term.factors)
      dim = dim - from + to;
  return moved;
}

} // namespace heddle::codegen
