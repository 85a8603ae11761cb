// The words of a template.
#pragma once

#include "frontend/tokenizers/jinja_value.h"
#include "runtime/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace heddle::jinja {

struct Token {
  enum class Kind {
    data,        ///< what stands between tags, as `value`
    outputBegin, ///< {{
    blockBegin,  ///< {%
    tagEnd,
    name,
    sign,
    literal, ///< a text or a number, as `value`
    finish,  ///< the end of the template
  };

  Kind kind = Kind::finish;
  size_t offset = 0;
  std::string_view word = {}; ///< in the source
  Value value = {};
};

/// Divides a template, valid UTF-8 whose lines end in "\n", into words; the last is `finish`. What
/// tags trim is left out. Errors (data): a tag, comment or text that does not end; a character that
/// means nothing.
Result<std::vector<Token>> tokenize(std::string_view source);

/// An error at a place of a template.
Error errorAt(size_t offset, std::string_view what);

} // namespace heddle::jinja
