// What was measured of the fusions, and which of them therefore are not made: a table, kept as a
// file that people can read.
#pragma once

#include "runtime/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// One fusion of operations of one shape, on one instruction set. A model has two programs, and so
/// the choice has two arms: for calls of few tokens, as in decoding, and for calls of many.
struct Choice {
  /// Times of all operations of the shape in a model's layers, in a call of so many tokens.
  struct Sample {
    int64_t tokens = 0;
    double fused = 0, unfused = 0; ///< microseconds
  };

  std::string isa;    ///< "avx512_bf16"
  std::string fusion; ///< "fuse-gated-linear"
  std::string shape;  ///< the types of the tensors that matter, "2048x768xf32 2048x768xf32"
  bool fewFused = true, manyFused = true;
  std::vector<Sample> measured;

  bool isFew(int64_t tokens) const;
};

/// Never keyed by the number of threads. Read once, and not changed while models are compiled by
/// it.
class ChoiceTable {
public:
  /// The tokens of a call that are few: what the program for decoding takes with these
  /// instructions; 0 where nobody knows them.
  static int64_t bound(std::string_view isa);

  /// The table that comes with Heddle.
  static const ChoiceTable &builtin();

  /// Reads what `text` returns, without the entries that hold for another heddle: `leftOut` tells.
  /// Errors (data), which begin with `name`: what is no table.
  static Result<ChoiceTable> read(std::string_view text, const std::string &name);

  /// Whether `text` is meant as a table, whatever is wrong with it: JSON that has choices.
  static bool isMeantBy(std::string_view text);

  /// Where it was read; empty where it was not.
  const std::string &name() const { return origin; }

  /// Of what was read but not taken, because its bound, instructions or fusion are not this
  /// heddle's: the first, and how many they are, on one line. Empty where there is nothing.
  const std::string &leftOut() const { return outdated; }

  /// Says that nobody asked for it: where it comes too late for a text, that is no error.
  void setUsual() { usual = true; }
  bool isUsual() const { return usual; }

  /// The table as JSON.
  std::string text() const;

  /// Adds `choice`, in place of the one of its set, fusion and shape.
  void set(Choice choice);

  /// In the order of set, fusion and shape.
  const std::vector<Choice> &choices() const { return all; }

private:
  std::vector<Choice> all;
  std::string origin, outdated;
  bool usual = false;
};

/// "128 tokens take 9.1 ms fused, 6.2 ms unfused": of the samples of one arm, the one that speaks
/// most clearly for leaving the operations unfused.
std::string whyUnfused(const Choice &choice, bool few);

} // namespace heddle
