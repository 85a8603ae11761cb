// What a plan says of the blocks of keys that attention reads. The kernel's interval() decides.
#include "codegen/kernels/block_classes.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace heddle::codegen {

/// `function` of several terms, or the only one.
static std::string ofAll(const char *function, ArrayRef<std::string> terms) {
  if (terms.size() == 1)
    return terms.front();
  return std::string(function) + "(" + llvm::join(terms, ", ") + ")";
}

DictionaryAttr blockClasses(Builder &builder, const ir::MaskConditions &mask) {
  auto number = [](int64_t value) { return std::to_string(value); };
  SmallVector<std::string> firsts, lasts = {"n - 1"};
  if (mask.window)
    firsts.push_back(*mask.window == 1 ? "p" : "p - " + number(*mask.window - 1));
  if (mask.causal)
    lasts.push_back(mask.prefix ? "max(p, " + number(*mask.prefix - 1) + ")" : "p");
  if (mask.window && (!mask.causal || mask.prefix))
    lasts.push_back("p");
  if (mask.chunk) {
    std::string start = "p / " + number(*mask.chunk) + " * " + number(*mask.chunk);
    firsts.push_back(start);
    lasts.push_back(start + " + " + number(*mask.chunk - 1));
  }
  bool hidesEarly = !firsts.empty() || mask.querySegments,
       hidesAny = hidesEarly || lasts.size() > 1;
  if (mask.window || firsts.empty())
    firsts.insert(firsts.begin(), "0");
  std::string keys = ofAll("max", firsts) + " to " + ofAll("min", lasts);
  if (mask.querySegments)
    keys = "the first to the last of p's segment in " + keys;
  auto entry = [&](StringRef name, const Twine &text) {
    return builder.getNamedAttr(name, builder.getStringAttr(text));
  };
  std::string edge = hidesEarly ? "the first and the last block with these keys"
                                : "the last block with these keys";
  if (mask.querySegments)
    edge += ", all where others lie between them";
  if (mask.mask)
    edge = "blocks with these keys: a tensor decides for each of them";
  return builder.getDictionaryAttr(
      {entry("keys", keys), entry("skipped", hidesAny ? "blocks without these keys" : "none"),
       entry("full", mask.mask ? "none" : "the other blocks"), entry("edge", edge)});
}

} // namespace heddle::codegen
