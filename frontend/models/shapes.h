// The shapes of models that are built in: names the command line knows, for weights by seed.
#pragma once

#include "frontend/graph.h"

#include <span>

namespace heddle {

struct BuiltinShape {
  std::string_view name;
  std::string_view about; ///< one line for people
  Graph (*build)(ElementType weights);
};

/// All of them, smallest first: tiny, gpt2-small, llama-110m, llama-1b, mixture-1b.
std::span<const BuiltinShape> builtinShapes();

/// The one of that name, or null.
const BuiltinShape *findShape(std::string_view name);

} // namespace heddle
