#include "frontend/formats/quote.h"
#include "frontend/tokenizers/jinja_functions.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::jinja {

std::optional<Value> Arguments::take(std::string_view name) {
  const auto found =
      std::ranges::find_if(named, [&](const auto &one) { return one.first == name; });
  if (found == named.end())
    return std::nullopt;
  Value value = std::move(found->second);
  named.erase(found);
  return value;
}

std::optional<Given> bindArguments(Meter &meter, const Arguments &arguments, const char *what,
                                   const Callable &callable) {
  const auto refuse = [&](const std::string &why) {
    meter.fail(fmt::format("the {} {} {}", what, inQuotes(callable.name), why));
    return std::nullopt;
  };
  Given given;
  if (arguments.values.size() > callable.parameters.size())
    return refuse(fmt::format("takes at most {} arguments here", callable.parameters.size()));
  for (size_t i = 0; i < arguments.values.size(); ++i) {
    meter.spend(arguments.values[i].width());
    given.values[i] = arguments.values[i];
    given.isGiven[i] = true;
  }
  for (const auto &[name, value] : arguments.named) {
    const auto found = std::ranges::find(callable.parameters, name);
    const auto index = static_cast<size_t>(found - callable.parameters.begin());
    if (found == callable.parameters.end())
      return refuse(fmt::format("has no argument {} here", inQuotes(name)));
    if (given.isGiven[index])
      return refuse(fmt::format("is given {} twice", inQuotes(name)));
    meter.spend(value.width());
    given.values[index] = value;
    given.isGiven[index] = true;
  }
  for (size_t i = 0; i < callable.needed; ++i)
    if (!given.isGiven[i])
      return refuse("needs more arguments");
  return given;
}

} // namespace heddle::jinja
