// The filters by what they are for.
#pragma once

#include "frontend/tokenizers/jinja_functions.h"

#include <span>

namespace heddle::jinja {

std::span<const Callable> textFilters();
std::span<const Callable> listFilters();

/// Those that choose from a list, or change its members, by another filter or test: "map",
/// "select", "reject", "selectattr", "rejectattr". Nothing for other names.
std::optional<Value> filterByAnother(Meter &meter, const std::string &name, const Value &subject,
                                     Arguments &arguments);

/// The part of a value that `attribute` names: "a.b" is b of a, and "a.0" the first of a. What is
/// undefined on the way is `otherwise`, unless that is none.
Value attributeOf(Meter &meter, const Value &value, const Value &attribute,
                  const Value &otherwise = nullptr);

} // namespace heddle::jinja
