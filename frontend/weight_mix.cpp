#include "frontend/weight_mix.h"

#include <algorithm>
#include <charconv>

namespace heddle {

std::optional<int64_t> layerOf(std::string_view parameter) {
  while (!parameter.empty()) {
    const std::string_view part = parameter.substr(0, parameter.find('.'));
    int64_t layer = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), layer);
    if (error == std::errc() && end == part.data() + part.size())
      return layer;
    parameter.remove_prefix(std::min(part.size() + 1, parameter.size()));
  }
  return std::nullopt;
}

bool isFiner(WeightType type, std::string_view parameter, bool isOutput, int64_t layers) {
  if (!type.mixed || isOutput)
    return type.mixed;
  const std::optional<int64_t> layer = layerOf(parameter);
  if (type.element != ElementType::q4_k || !layer ||
      !(parameter.ends_with(".value") || parameter.ends_with(".down")))
    return false;
  const int64_t eighth = layers / 8;
  return *layer < eighth || *layer >= 7 * layers / 8 || (*layer - eighth) % 3 == 2;
}

} // namespace heddle
