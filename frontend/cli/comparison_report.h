// A comparison for people and for programs.
#pragma once

#include "frontend/cli/comparison.h"
#include "frontend/cli/json.h"

namespace heddle::command {

/// The whole report, `title` being the model's name.
std::string comparisonText(const Comparison &comparison, const std::string &title, int64_t reps);

/// The two programs alone, side by side.
std::string sidesText(const Comparison &comparison);

Json comparisonJson(const Comparison &comparison);

/// "2.41x", or that the two cannot be told apart.
std::string speedupText(const Times &fast, const Times &slow);

} // namespace heddle::command
