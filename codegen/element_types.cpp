// Element types of tensors.
#include "codegen/element_types.h"

#include "codegen/lowering.h"
#include "runtime/cache.h"

using namespace mlir;

namespace heddle::codegen {

using runtime::ElementType;

std::optional<ElementType> elementTypeOf(Type element) {
  if (element.isF32())
    return ElementType::f32;
  if (element.isBF16())
    return ElementType::bf16;
  if (element.isInteger(32))
    return ElementType::i32;
  if (element.isInteger(1))
    return ElementType::i1;
  if (element.isF64())
    return ElementType::f64;
  auto blocks = dyn_cast<ir::BlocksType>(element);
  if (!blocks)
    return std::nullopt;
  switch (blocks.getKind()) {
  case ir::BlockKind::Q8_0:
    return ElementType::q8_0;
  case ir::BlockKind::Q4_0:
    return ElementType::q4_0;
  case ir::BlockKind::Q4_K:
    return ElementType::q4_k;
  case ir::BlockKind::Q6_K:
    return ElementType::q6_k;
  case ir::BlockKind::Int8:
    return ElementType::int8;
  case ir::BlockKind::Row32:
  case ir::BlockKind::Row256:
    return std::nullopt;
  }
  llvm_unreachable("every kind is handled");
}

bool isStoredAs(ElementType element, Type stored) {
  switch (element) {
  case ElementType::f32:
    return stored.isF32();
  case ElementType::bf16:
    return stored.isInteger(16);
  case ElementType::i32:
    return stored.isInteger(32);
  case ElementType::f64:
    return stored.isF64();
  case ElementType::i1:
  case ElementType::q8_0:
  case ElementType::q4_0:
  case ElementType::q4_k:
  case ElementType::q6_k:
  case ElementType::int8:
    return stored.isInteger(8);
  }
  llvm_unreachable("every type is handled");
}

bool isStoredAs(runtime::CacheElement element, Type stored) {
  switch (element) {
  case runtime::CacheElement::f32:
    return stored.isF32();
  case runtime::CacheElement::bf16:
    return stored.isInteger(16) || stored.isInteger(32);
  case runtime::CacheElement::f16:
    return stored.isInteger(16);
  case runtime::CacheElement::int8:
    return stored.isInteger(8);
  }
  llvm_unreachable("every element is handled");
}

runtime::CacheShape cacheShapeOf(ir::CacheType type) {
  return {type.getLayers(), type.getHeads(), type.getKeyWidth(), type.getValueWidth(),
          cacheElementOf(type.getElement())};
}

runtime::CacheElement cacheElementOf(Type element) {
  if (element.isF32())
    return runtime::CacheElement::f32;
  if (element.isBF16())
    return runtime::CacheElement::bf16;
  return element.isF16() ? runtime::CacheElement::f16 : runtime::CacheElement::int8;
}

int64_t keyBytes(const runtime::CacheShape &cache) {
  return runtime::CacheLayout{cache, 1}.keyBytesPerSlot();
}

int64_t valueBytes(const runtime::CacheShape &cache) {
  return runtime::CacheLayout{cache, 1}.valueBytesPerSlot();
}

const runtime::BlockFormat *blockFormatOf(Type element) {
  auto blocks = dyn_cast<ir::BlocksType>(element);
  return blocks ? runtime::findBlockFormat(ir::stringifyBlockKind(blocks.getKind())) : nullptr;
}

RowBlocks rowBlocks(ir::BlocksType type) {
  if (type.getKind() == ir::BlockKind::Row32)
    return {.length = 32, .sums16 = 0, .sums32 = 0, .values = 8, .bytes = 40};
  return {.length = 256, .sums16 = 8, .sums32 = 72, .values = 88, .bytes = 344};
}

Size storedBytes(ArrayRef<Size> sizes, Type element) {
  auto blocks = dyn_cast<ir::BlocksType>(element);
  if (!blocks)
    return elementCount(sizes) * constantSize(storedBytes(element));
  int64_t width = *asConstant(sizes.back());
  int64_t row =
      blocks.ofRows() ? rowBlocks(blocks).rowBytes(width) : blockFormatOf(element)->rowBytes(width);
  return elementCount(sizes.drop_back()) * constantSize(row);
}

} // namespace heddle::codegen
