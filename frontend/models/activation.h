// The functions that an MLP may have.
#pragma once

#include "frontend/formats/model_config.h"
#include "frontend/operations.h"

namespace heddle {

inline Value activate(Activation activation, Value x, Where where = Where::current()) {
  switch (activation) {
  case Activation::silu:
    return silu(x, where);
  case Activation::geluErf:
    return geluErf(x, where);
  case Activation::geluTanh:
    break;
  }
  return geluTanh(x, where);
}

} // namespace heddle
