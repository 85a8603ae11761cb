// The facts that `inspect` tells of a model and its tokenizer.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/inspect.h"
#include "frontend/tokenizers/tokenizer.h"

#include <vector>

namespace heddle {

/// All that follows from the configuration; what a model does without is left out.
std::vector<InspectedFact> modelFacts(const ModelConfig &config);

/// Its words, its marks, and whether conversations can be written by its chat template.
std::vector<InspectedFact> tokenizerFacts(const Tokenizer &tokenizer);

} // namespace heddle
