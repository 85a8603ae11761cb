// What the weights of a model are stored as.
#pragma once

#include "frontend/graph.h"

#include <optional>
#include <span>
#include <string_view>

namespace heddle {

/// One element type for the weights of products and for embedding tables, or a mix around one:
/// as llama.cpp mixes them, the output matrix is then q6_k, and with q4_k so are half of the value
/// and down matrices.
struct WeightType {
  ElementType element = ElementType::f32;
  bool mixed = false;

  WeightType(ElementType element, bool mixed = false) : element(element), mixed(mixed) {}

  /// As `--dtype` takes it: f32, bf16, q8_0, q4_0 (a mix), q4_k, q4_k_m (a mix), q6_k, int8.
  std::string_view name() const;
  /// Whether values are stored in blocks, which run along the rows of a matrix.
  bool isBlocks() const { return element != ElementType::f32 && element != ElementType::bf16; }
  static std::optional<WeightType> find(std::string_view name);
  /// Every name.
  static std::span<const std::string_view> names();
};

} // namespace heddle
