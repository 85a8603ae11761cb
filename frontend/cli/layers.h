// Repeated parts of a model as one: "layers.0.query" to "layers.21.query" are "layers.0-21.query".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle::command {

/// One of several equal parts, named by a number.
struct Layer {
  std::string prefix; ///< "layers."
  int64_t index = 0;
};

/// The first number that is a whole part of `id`; none where there is none.
std::optional<Layer> layerOf(std::string_view id);

/// `text` with all it says of this layer said of any: "layers.7." as "layers.*.", and of the
/// following one, "layers.8.", as "layers.*+1.".
std::string ofAnyLayer(std::string text, const Layer &layer);

/// "0-3,5" for 0, 1, 2, 3 and 5, in any order.
std::string rangesText(std::vector<int64_t> numbers);

/// Replaces every `from` in `text`.
std::string replaced(std::string text, std::string_view from, std::string_view to);

} // namespace heddle::command
