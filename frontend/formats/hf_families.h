// How the families of the transformers library describe themselves in a config.json.
#pragma once

#include "frontend/formats/config_reader.h"
#include "frontend/formats/hf_rotary.h"
#include "frontend/formats/model_config.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heddle::hf {

/// The defaults of a family for what its configurations leave out.
struct Usual {
  int64_t context = 2048;
  struct Sizes {
    int64_t width, hidden, layers, heads, words;
  };
  std::optional<Sizes> sizes = std::nullopt; ///< none: its configurations say them
  std::optional<int64_t> kvHeads =
      std::nullopt; ///< where the key is missing; none: as many as heads
  double normEpsilon = 1e-6;
  std::optional<int64_t> headWidth = std::nullopt; ///< none: width / heads
  bool tied = false;
  const char *activation = "silu";
  const char *activationKey = "hidden_act";
  HfRotaryDefaults rotary = {};
};

/// For `readWindow`: all of them.
inline bool everyLayer(int64_t, int64_t) { return true; }

class Families {
public:
  explicit Families(ConfigReader &config) : config(config) {}

  ModelConfig model;

  using Read = void (Families::*)();
  static const std::vector<std::pair<std::string_view, Read>> &table();

private:
  void readActivation(const char *key, const std::string &usual);
  void checkHeads();
  /// Heads as wide as their part of the width, which `key` says the number of.
  void divideHeads(const char *key);
  /// Sizes, norms, rotation and embedding, as all kin of LLaMA have them.
  void readKin(const Usual &usual);
  void readProjectionBiases();
  /// Refuses a feature that is not known here where it is on.
  void mustBeOff(const char *key) {
    if (config.boolean(key, false))
      config.fail(key, "false");
  }
  /// Refuses a value that is not the one that changes nothing.
  void mustBe(const char *key, int64_t value) {
    if (config.integer(key, 0, value) != value)
      config.fail(key, fmt::format("{}", value));
  }
  /// Takes `older`, another name of what `key` says, where both are there and agree.
  void mustAgree(const char *older, const char *key) {
    if (config.has(key))
      heddle::mustAgree(config, older, config, key);
  }
  /// The cap at `key`; none where it is null.
  double softcapOf(const char *key, double usual) {
    return config.number(key, config.mentions(key) ? 0 : usual, 0);
  }
  /// The layers with a window, by `layer_types` where that is there, else as `isWindowed` says.
  /// `patternKey`: what makes layers have a window without `layer_types`, in a family that needs
  /// one; empty: in this family all layers may do without.
  void readWindow(int64_t usual, bool (*isWindowed)(int64_t layer, int64_t pattern),
                  int64_t pattern, std::string_view patternKey = {});
  void readQwenWindow();

  void readLlama();
  void readMistral();
  void readQwen2();
  void readQwen3();
  /// The experts of a mixture; `count` is the key of their number.
  void readExperts(const char *count, int64_t usual, int64_t usualPerToken);
  void readMixtral();
  void readQwen3Moe();
  void readPhi3();
  void readGemma();
  void readGemmaKin(int64_t usualKvHeads); ///< what the first two have in common
  void readGemma2();
  void readGemma3();
  void readOlmo2();
  void readGranite();
  struct GptSizes {
    int64_t width, layers, heads, words, context;
  };
  /// Sizes, norms and activation, as GPT-2 and GPT-J name them.
  void readGptSizes(const GptSizes &usual);
  void readGpt2();
  void readNeox();
  void readGptj();
  void readStarcoder2();

  ConfigReader &config;
};

} // namespace heddle::hf
