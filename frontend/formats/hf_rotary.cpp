#include "frontend/formats/hf_rotary.h"

#include "frontend/formats/quote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace heddle {

using Kind = RotaryScaling::Kind;

namespace {

/// 0.1 ln(factor) + 1, scaled by `weight`: the temperature that yarn puts on attention.
double yarnMagnitude(double factor, double weight) {
  return factor <= 1 ? 1 : 0.1 * weight * std::log(factor) + 1;
}

/// A number that may stand in several places, where it must be the same.
double oneOf(std::initializer_list<std::pair<ConfigReader *, const char *>> places,
             double fallback) {
  std::optional<std::pair<ConfigReader *, const char *>> first;
  for (const auto &[reader, key] : places) {
    if (!reader->has(key))
      continue;
    const double value = reader->number(key, std::nullopt, 0);
    if (first)
      mustAgree(*first->first, first->second, *reader, key);
    else
      first = {reader, key}, fallback = value;
  }
  return fallback;
}

std::string typeOf(ConfigReader &scaling) {
  const std::string newer = scaling.text("rope_type", ""), older = scaling.text("type", "");
  if (!newer.empty() && !older.empty() && newer != older)
    scaling.fail("rope_type", fmt::format("the {} that 'type' has", inQuotes(older)));
  return !newer.empty() ? newer : !older.empty() ? older : "default";
}

class ScalingReader {
public:
  ScalingReader(ConfigReader &config, ConfigReader &scaling, const RotaryConfig &rotary,
                int64_t dims, int64_t context, int64_t usualOriginal)
      : config(config), scaling(scaling), rotary(rotary), dims(dims), context(context),
        usualOriginal(usualOriginal ? usualOriginal : context) {}

  RotaryScaling read() {
    const std::string type = typeOf(scaling);
    if (type == "default")
      return result;
    if (type == "linear" || type == "dynamic") {
      result.kind = type == "linear" ? Kind::linear : Kind::dynamic;
      result.factor = scaling.number("factor", std::nullopt, 0);
      readOriginal();
    } else if (type == "yarn") {
      readYarn();
    } else if (type == "llama3") {
      readLlama3();
    } else if (type == "longrope" || type == "su") {
      readLongRope();
    } else {
      scaling.fail(scaling.has("rope_type") ? "rope_type" : "type",
                   "'default', 'linear', 'dynamic', 'yarn', 'llama3' or 'longrope'");
    }
    return result;
  }

private:
  /// The context it was trained on before, inside or beside the scaling.
  void readOriginal() {
    constexpr const char *key = "original_max_position_embeddings";
    const int64_t outside = config.integer(key, 1, 0), inside = scaling.integer(key, 1, 0);
    if (outside && inside && outside != inside)
      config.fail(key, fmt::format("the {} that the rotary scaling has", inside));
    result.originalContext = inside ? inside : outside ? outside : usualOriginal;
  }

  void readYarn() {
    result.kind = Kind::yarn;
    readOriginal();
    const double ratio = double(context) / double(result.originalContext);
    result.factor = scaling.number("factor", ratio, 0);
    result.betaFast = scaling.number("beta_fast", 32, 0);
    result.betaSlow = scaling.number("beta_slow", 1, 0);
    result.truncate = scaling.boolean("truncate", true);
    scaling.harmless("finetuned"); // whether weights were trained further with it
    const double scale = scaling.number("mscale", 0), all = scaling.number("mscale_all_dim", 0);
    const double usual = scale != 0 && all != 0 ? yarnMagnitude(result.factor, scale) /
                                                      yarnMagnitude(result.factor, all)
                                                : yarnMagnitude(result.factor, 1);
    result.magnitude = scaling.number("attention_factor", usual, 0);
    if (rotary.base <= 1)
      config.fail("rope_theta", "a base above 1 for yarn");
  }

  void readLlama3() {
    result.kind = Kind::llama3;
    readOriginal();
    result.factor = scaling.number("factor", std::nullopt, 0);
    result.lowFactor = scaling.number("low_freq_factor", std::nullopt, 0);
    result.highFactor = scaling.number("high_freq_factor", std::nullopt, 0);
    if (result.highFactor <= result.lowFactor)
      scaling.fail("high_freq_factor", "more than low_freq_factor");
  }

  void readLongRope() {
    result.kind = Kind::longRope;
    readOriginal();
    result.shortFactors = scaling.factors("short_factor", dims / 2);
    result.longFactors = scaling.factors("long_factor", dims / 2);
    const auto original = double(result.originalContext);
    const double factor = scaling.number("factor", double(context) / original, 0);
    const double usual =
        factor <= 1 || original <= 1 ? 1 : std::sqrt(1 + std::log(factor) / std::log(original));
    result.magnitude = scaling.number("attention_factor", usual, 0);
  }

  ConfigReader &config, &scaling;
  const RotaryConfig &rotary;
  int64_t dims, context, usualOriginal;
  RotaryScaling result;
};

/// An error where the two spellings of the scaling say different things.
void compareSpellings(ConfigReader &config, ConfigReader &newer, ConfigReader &older) {
  const auto differ = [&](const char *key, const std::string &one, const std::string &other) {
    config.fail(fmt::format("'rope_parameters' and 'rope_scaling' disagree: {} is {} in the one "
                            "and {} in the other",
                            key, one, other));
  };
  if (const std::string one = typeOf(newer), other = typeOf(older); one != other)
    differ("rope_type", inQuotes(one), inQuotes(other));
  for (const char *key : {"factor", "original_max_position_embeddings", "attention_factor",
                          "beta_fast", "beta_slow", "low_freq_factor", "high_freq_factor", "mscale",
                          "mscale_all_dim", "truncate", "short_factor", "long_factor"})
    if (!areSame(newer, key, older, key))
      differ(key, newer.shown(key), older.shown(key));
}

} // namespace

RotaryConfig readHfRotary(ConfigReader &config, int64_t headWidth, int64_t context,
                          const HfRotaryDefaults &defaults) {
  RotaryConfig rotary{.pairing = RotaryPairing::halfSplit};
  ConfigReader older = config.inner("rope_scaling"), whole = config.inner("rope_parameters");
  const bool hasParts = *defaults.layerType && whole.has(defaults.layerType);
  ConfigReader newer = hasParts ? whole.inner(defaults.layerType) : whole;
  const bool isNewer = config.has("rope_parameters");
  if (isNewer && config.has("rope_scaling"))
    compareSpellings(config, newer, older);
  constexpr const char *base = "rope_theta", *share = "partial_rotary_factor";
  rotary.base =
      oneOf({{&config, defaults.olderBase}, {&config, base}, {&newer, base}, {&older, base}},
            defaults.base);
  const double turned =
      oneOf({{&config, defaults.olderTurned}, {&config, share}, {&newer, share}, {&older, share}},
            defaults.turned);
  // Of all entries at most: what is beyond them is refused below.
  const auto dims = int64_t(double(headWidth) * std::min(turned, 1.0));
  rotary.dims = dims == headWidth ? 0 : dims;
  if (turned == 1 && dims % 2 != 0) {
    config.fail(config.has("head_dim") ? "head_dim" : "hidden_size",
                fmt::format("what gives heads an even number of entries, which turn in pairs "
                            "(here {})",
                            headWidth));
    return rotary;
  }
  if (turned > 1 || dims < 2 || dims % 2 != 0) {
    config.fail(
        "partial_rotary_factor",
        fmt::format("a share that makes an even number of a head's {} entries turn", headWidth));
    return rotary;
  }
  rotary.scaling = ScalingReader(config, isNewer ? newer : older, rotary, dims, context,
                                 defaults.originalContext)
                       .read();
  return rotary;
}

} // namespace heddle
