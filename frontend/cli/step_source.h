// Which operation a step of a program belongs to.
#pragma once

#include <string>

namespace heddle::command {

/// The id in `known`, a map of ids, that the step `id` belongs to: its own, or, where the step was
/// made on the way down, that of what it was made of: "norm" for "norm.quantised32". `known.end()`
/// where there is neither.
template <class Known>
auto findSource(const Known &known, std::string id) {
  auto found = known.find(id);
  for (size_t dot; found == known.end() && (dot = id.rfind('.')) != std::string::npos;) {
    id.erase(dot);
    found = known.find(id);
  }
  return found;
}

} // namespace heddle::command
