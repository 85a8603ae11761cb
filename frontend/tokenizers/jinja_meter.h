// How much a template may do, and what went wrong in it.
#pragma once

#include "frontend/tokenizers/jinja_tokens.h"

#include <fmt/format.h>

#include <optional>

namespace heddle::jinja {

constexpr int64_t mostSteps = 1'000'000;
/// Parts of values, and pieces of 64 bytes of text, that are looked at or made.
constexpr int64_t mostWork = int64_t{1} << 22;
/// Bytes of the values that live at one time.
constexpr int64_t mostHeld = int64_t{24} << 20;
/// The largest `Value::size`, the longest text in bytes, and the greatest height of a value.
constexpr int64_t mostSize = int64_t{1} << 17;
constexpr size_t longestText = size_t{1} << 22;
constexpr int greatestHeight = 100;

/// Goes with a template that is run. After a failure every value is undefined.
class Meter {
public:
  size_t offset = 0; ///< of what is under way
  int filters = 0;   ///< of those that call each other
  std::optional<Error> failure;

  /// Fails with `what`; answers with something undefined.
  Value fail(std::string_view what) {
    if (!failure)
      failure = errorAt(offset, what);
    return {};
  }

  /// Counts `amount` more of work; false after a failure.
  bool spend(int64_t amount) {
    if ((work += amount) > mostWork)
      fail("works on more values than a template has a use for");
    return !failure;
  }

  /// Counts work on each character of a text.
  bool spendOnCharacters(size_t bytes) { return spend(static_cast<int64_t>(bytes / 4)); }

  /// Counts the search for `sign` in a text, at its slowest.
  bool spendOnSearch(const std::string &text, const std::string &sign) {
    return spend(static_cast<int64_t>((1 + text.size() / 16) * (1 + sign.size() / 64)));
  }

  /// Refuses a list before it is made.
  bool fitsMembers(size_t count) {
    if (count > static_cast<size_t>(mostSize))
      fail(fmt::format("makes a list of more than {} members", mostSize));
    return spend(static_cast<int64_t>(count));
  }

  bool step() {
    if (++steps > mostSteps)
      fail("takes more than a million steps");
    return !failure;
  }

  /// Refuses a text before it is made.
  bool fits(size_t bytes) {
    if (bytes > longestText)
      fail("makes a text of more than 4 MB");
    return spend(static_cast<int64_t>(bytes / 64)) && !failure;
  }

  /// Refuses a value that is too large.
  void check(const Value &value) {
    if (value.size() > mostSize || value.height() > greatestHeight)
      fail("makes a value that is too large or nested too deep");
    if (Counted::held - heldBefore > mostHeld)
      fail("holds more than 24 MB of values");
  }

private:
  int64_t steps = 0, work = 0;
  int64_t heldBefore = Counted::held;
};

} // namespace heddle::jinja
