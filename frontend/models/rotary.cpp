#include "frontend/models/rotary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heddle {

using Kind = RotaryScaling::Kind;

namespace {

std::vector<double> plainFrequencies(double base, int64_t dims) {
  std::vector<double> frequencies;
  for (int64_t i = 0; i < dims / 2; ++i)
    frequencies.push_back(std::pow(base, -2 * double(i) / double(dims)));
  return frequencies;
}

/// The base of dynamic scaling: as trained up to the original context, larger beyond it.
double dynamicBase(double base, const RotaryScaling &scaling, int64_t dims, double length,
                   double original) {
  if (length <= original || dims <= 2)
    return base;
  return base * std::pow(scaling.factor * length / original - (scaling.factor - 1),
                         double(dims) / double(dims - 2));
}

/// The fractional pair that turns `turns` times within the original context.
double pairOfTurns(double turns, double base, int64_t dims, double original) {
  return double(dims) * std::log(original / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
}

/// Fast pairs are kept, slow ones divided, a ramp between them.
void applyYarn(std::vector<double> &frequencies, const RotaryScaling &scaling, double base,
               int64_t dims) {
  const auto original = double(scaling.originalContext);
  double low = pairOfTurns(scaling.betaFast, base, dims, original);
  double high = pairOfTurns(scaling.betaSlow, base, dims, original);
  if (scaling.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, double(dims - 1));
  if (low == high)
    high += 0.001;
  for (size_t i = 0; i < frequencies.size(); ++i) {
    const double slow = std::clamp((double(i) - low) / (high - low), 0.0, 1.0);
    frequencies[i] = frequencies[i] / scaling.factor * slow + frequencies[i] * (1 - slow);
  }
}

void applyLlama3(std::vector<double> &frequencies, const RotaryScaling &scaling) {
  const auto original = double(scaling.originalContext);
  for (double &frequency : frequencies) {
    const double waves = original * frequency / (2 * std::numbers::pi); // within the context
    const double kept = std::clamp(
        (waves - scaling.lowFactor) / (scaling.highFactor - scaling.lowFactor), 0.0, 1.0);
    frequency = (1 - kept) * frequency / scaling.factor + kept * frequency;
  }
}

bool isLong(const RotaryScaling &scaling, int64_t length) {
  return length > scaling.originalContext;
}

} // namespace

Rotary rotaryOf(const RotaryConfig &config, int64_t headWidth, int64_t trained, int64_t declared) {
  const RotaryScaling &scaling = config.scaling;
  const int64_t dims = config.dims ? config.dims : headWidth;
  const int64_t length = declared ? declared : trained;
  Rotary rotary{.pairing = config.pairing == RotaryPairing::halfSplit ? Pairing::halfSplit
                                                                      : Pairing::interleaved,
                .base = config.base,
                .dims = config.dims == headWidth ? 0 : config.dims,
                .magnitude = scaling.magnitude.value_or(1)};
  if (scaling.kind == Kind::none)
    return rotary;
  if (scaling.kind == Kind::dynamic) {
    const int64_t original = scaling.originalContext ? scaling.originalContext : trained;
    rotary.base = dynamicBase(config.base, scaling, dims, double(length), double(original));
    return rotary;
  }
  std::vector<double> frequencies = plainFrequencies(config.base, dims);
  if (scaling.kind == Kind::linear)
    for (double &frequency : frequencies)
      frequency /= scaling.factor;
  if (scaling.kind == Kind::yarn)
    applyYarn(frequencies, scaling, config.base, dims);
  if (scaling.kind == Kind::llama3)
    applyLlama3(frequencies, scaling);
  if (scaling.kind == Kind::longRope || scaling.kind == Kind::factors) {
    const bool useLong = scaling.kind == Kind::longRope && isLong(scaling, length);
    const std::vector<double> &factors = useLong ? scaling.longFactors : scaling.shortFactors;
    for (size_t i = 0; i < std::min(factors.size(), frequencies.size()); ++i)
      frequencies[i] /= factors[i];
  }
  rotary.frequencies = std::move(frequencies);
  return rotary;
}

std::string lengthDependence(const RotaryScaling &scaling, int64_t trained, int64_t declared) {
  const int64_t length = declared ? declared : trained;
  if (scaling.kind == Kind::dynamic)
    return fmt::format("dynamic rotary scaling for a context of {} positions", length);
  if (scaling.kind == Kind::longRope)
    return fmt::format("longrope's {} factors, for a context of {} positions (those up to {} are "
                       "short)",
                       isLong(scaling, length) ? "long" : "short", length, scaling.originalContext);
  return "";
}

} // namespace heddle
