// From a graph that goes wrong to a small one that still does.
#pragma once

#include "frontend/model.h"

#include <functional>
#include <string>

namespace heddle {

struct Reduced {
  std::string text;
  int64_t operations = 0; ///< left in it
  int64_t before = 0;     ///< in the graph that was given
  int64_t tried = 0;      ///< texts that were tested
};

/// Whether a text still shows what is looked for. An error ends the search.
using Interesting = std::function<Result<bool>(const std::string &text)>;

/// Makes `source`, a text of level graph, fused or planned, smaller as long as `interesting` says
/// so: results and arguments are dropped, operations replaced by new arguments or by an operand of
/// their type, what @load makes becomes given, constants made uniform, names dropped. All that is
/// tested verifies. The answer is such that no single one of these steps makes it smaller. Errors:
/// those of the source; one that is not interesting itself (data).
Result<Reduced> reduce(const ModelSource &source, const Interesting &interesting);

} // namespace heddle
