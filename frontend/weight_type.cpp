#include "frontend/weight_type.h"

#include "runtime/weights.h"

#include <algorithm>

namespace heddle {

static constexpr std::string_view known[] = {"f32",  "bf16",   "q8_0", "q4_0",
                                             "q4_k", "q4_k_m", "q6_k", "int8"};

std::string_view WeightType::name() const {
  return mixed && element == ElementType::q4_k ? "q4_k_m" : runtime::typeName(element);
}

std::optional<WeightType> WeightType::find(std::string_view name) {
  if (name == "q4_k_m")
    return WeightType(ElementType::q4_k, true);
  for (ElementType element : {ElementType::f32, ElementType::bf16, ElementType::q8_0,
                              ElementType::q4_k, ElementType::q6_k, ElementType::int8})
    if (runtime::typeName(element) == name)
      return WeightType(element);
  if (name == "q4_0")
    return WeightType(ElementType::q4_0, true);
  return std::nullopt;
}

std::span<const std::string_view> WeightType::names() { return known; }

} // namespace heddle
