// A whole model in text, small enough to read: LLaMA's shape, one layer.
#pragma once

#include "tests/unit/cases/cases.h"

namespace heddle::test {

struct TinyOptions {
  bool rotary = true;
  bool causal = true;
};

/// 7 words, width 8, two query heads of 4 over one key/value head, 6 hidden entries, weights of
/// about 0.5. Takes ids and rows, gives logits of the rows asked for.
Model tinyModel(TinyOptions options);

} // namespace heddle::test
