// Random models in text: any legal mix of what fusions look for and of what stops them.
#pragma once

#include "tests/unit/cases/cases.h"

namespace heddle::test {

struct RandomGraph {
  Model model;
  Call call;
};

/// The same graph for the same seed, on every machine.
RandomGraph randomGraph(unsigned seed);

} // namespace heddle::test
