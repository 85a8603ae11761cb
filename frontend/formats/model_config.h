// What a model is, as its checkpoint states it, whatever the format of its files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// Which of the definitions of `models/` a checkpoint is of.
enum class Architecture {
  llama, ///< RMSNorm, rotary positions, grouped-query attention, a gated MLP; and its kin
  gpt2,  ///< layer norm, learned positions, GELU
  neox,  ///< layer norm, rotary positions; attention and MLP may be parallel
};

/// Which two entries of a head the rotation turns together. It follows from the order in which a
/// checkpoint stores the rows of its query and key weights.
enum class RotaryPairing {
  interleaved, ///< entries 2i and 2i + 1
  halfSplit,   ///< entries i and i + dims / 2
};

/// The most positions that a graph may say a model has, see compiler/signature.cpp.
constexpr int64_t longestContext = int64_t{1} << 30;

/// How the frequencies of the rotation are changed for contexts longer than those trained on.
struct RotaryScaling {
  enum class Kind {
    none,
    linear,   ///< all divided by `factor`
    dynamic,  ///< a larger base where the context is longer than the original one
    yarn,     ///< https://arxiv.org/abs/2309.00071
    llama3,   ///< low frequencies divided, high ones kept, a ramp between
    longRope, ///< https://arxiv.org/abs/2402.13753: divided by tables
    factors,  ///< divided by a table, `shortFactors`
  };
  Kind kind = Kind::none;
  double factor = 1;
  int64_t originalContext = 0;           ///< positions it was trained on before
  std::optional<double> magnitude;       ///< on the turned entries; none: as the kind has it
  double betaFast = 32, betaSlow = 1;    ///< yarn: turns within the original context
  bool truncate = true;                  ///< yarn: bounds of the ramp are whole numbers
  double lowFactor = 1, highFactor = 4;  ///< llama3: wavelengths per original context
  std::vector<double> shortFactors = {}; ///< longRope: up to the original context; factors
  std::vector<double> longFactors = {};  ///< longRope: beyond it
};

struct RotaryConfig {
  RotaryPairing pairing = RotaryPairing::interleaved;
  double base = 10000;
  int64_t dims = 0; ///< entries of a head that turn; 0: all
  RotaryScaling scaling = {};
};

/// The function of the gate of an MLP, or between its two products.
enum class Activation { silu, geluErf, geluTanh };

/// Norms of queries and keys before they turn.
enum class QueryKeyNorm {
  none,
  heads, ///< each head by itself
  whole, ///< all heads together
};

/// How attention and MLP of a layer are added to what goes into it.
enum class Residual {
  sequential, ///< the MLP sees what attention gave
  parallel,   ///< both see the same, each through its own norm
  sharedNorm, ///< both see the same through one norm
};

/// The shape and the constants of a model. Consistent: every count is at least 1, kvHeads divides
/// heads, an even number of entries turns.
struct ModelConfig {
  Architecture architecture = Architecture::llama;
  std::string family = "llama"; ///< as the checkpoint names it
  int64_t width = 0;            ///< entries of a token's vector between the layers
  int64_t hidden = 0;           ///< entries inside the MLP
  int64_t layers = 0;
  int64_t heads = 0;      ///< query heads
  int64_t kvHeads = 0;    ///< key and value heads
  int64_t headWidth = 0;  ///< entries of one head
  int64_t vocabulary = 0; ///< words, rows of the embedding
  int64_t context = 0;    ///< positions the model was trained for; 0: not said
  double normEpsilon = 1e-5;
  RotaryConfig rotary = {};
  bool tiedEmbedding = false; ///< the output product uses the embedding's rows

  bool inOut = false; ///< weights of products are stored `[in, out]`

  // What GPT-NeoX and its kin add to it.
  Residual residual = Residual::sequential;
  bool logitBias = false;
  bool qkvByHead = false; ///< of `mergedQkv`: query, key and value of a head stand together

  // What the kin of LLaMA add to it.
  bool queryBias = false, outputBias = false, mlpBias = false; ///< query: key and value too
  QueryKeyNorm queryKeyNorm = QueryKeyNorm::none;
  bool normBefore = true;    ///< of what goes into attention and MLP
  bool normAfter = false;    ///< of what comes out of them
  bool normAddsOne = false;  ///< norms multiply by 1 + w of what is stored
  bool mergedQkv = false;    ///< query, key and value are stored as one tensor
  bool mergedGateUp = false; ///< gate and up too
  Activation activation = Activation::silu;
  int64_t experts = 0;         ///< MLPs that a token chooses among; 0: there is one for all
  int64_t expertsPerToken = 0; ///< how many it chooses
  int64_t expertHidden = 0;    ///< entries inside the MLP of an expert
  bool weightsSumToOne = true; ///< of the chosen experts; else they are parts of the whole softmax
  std::vector<bool> mixture = {};  ///< by layer, whether it has experts; empty: all have them
  int64_t window = 0;              ///< positions seen; 0: all
  std::vector<bool> windowed = {}; ///< by layer; empty: all have it
  std::optional<RotaryConfig> windowRotary = std::nullopt;      ///< of windowed layers, if another
  std::optional<double> attentionScale = std::nullopt;          ///< none: 1 / sqrt(headWidth)
  double attentionSoftcap = 0, logitSoftcap = 0;                ///< 0: none
  double embeddingScale = 1, residualScale = 1, logitScale = 1; ///< factors
};

} // namespace heddle
