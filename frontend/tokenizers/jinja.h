// The part of Jinja (https://jinja.palletsprojects.com/templates) that chat templates are written
// in, as the transformers library sets it up: blocks trim the line break after them and the spaces
// before them, `break`, `continue` and `generation` are known, lists and dictionaries never change.
#pragma once

#include "frontend/tokenizers/jinja_syntax.h"
#include "runtime/result.h"

#include <map>
#include <string>
#include <string_view>

namespace heddle::jinja {

/// The stack that a template may take, whatever it is.
inline constexpr size_t stackBytes = size_t{32} << 20;

/// A template that was read. Errors (data) name the construct that is not known, and its offset.
Result<Body> parse(std::string_view source);

/// What the template makes of the variables, whose texts are valid UTF-8. Errors (data): an
/// operation that is not known or not possible, what the template itself raises, more steps, work
/// or memory than a template has a use for.
Result<std::string> render(const Body &body, std::map<std::string, Value> variables);

} // namespace heddle::jinja
