// From the name of a model to what compiles and runs: its graph, its weights, where its tokenizer
// may be.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/model.h"
#include "frontend/tokenizers/tokenizer.h"
#include "frontend/weight_type.h"
#include "runtime/weights.h"

#include <memory>
#include <optional>
#include <string>

namespace heddle {

struct LoadOptions {
  std::string weights = {}; ///< a checkpoint to take the weights from; empty: the model's own
  uint64_t seed = 0;        ///< of weights that are made up
  /// Positions the session will have, where known: some rotary scalings depend on it. 0: as many as
  /// the model was trained for.
  int64_t context = 0;
  OpenOptions opening = {}; ///< of checkpoints
  /// What its weights will be compiled as, if as something else than they are. In blocks, a model
  /// whose file has its matrices as `[in, out]` gets a graph that takes them as `[out, in]`.
  std::optional<WeightType> dtype = std::nullopt;
};

/// A model, ready to compile. No weight has been read or made yet.
struct LoadedModel {
  std::string name; ///< for people: the file's or the shape's
  ModelSource source;
  std::shared_ptr<runtime::WeightStore> weights;
  std::optional<Checkpoint> checkpoint =
      std::nullopt; ///< the file of the weights, if they are of one
};

/// Finds the model `name`: a built-in shape, with weights made up from a seed; a checkpoint; or a
/// file of graph text ("-": standard input), with the weights that `options` says, else made-up
/// ones. Errors (data): no such file or shape; a file of another kind, or damaged.
Result<LoadedModel> loadModel(const std::string &name, const LoadOptions &options = {});

/// The same for a graph.
Result<LoadedModel> loadModel(const Graph &graph, const LoadOptions &options = {});

/// Whether `name` is that of a model without files of weights: a built-in shape, or graph text, in
/// a file or on standard input ("-"). Error (data): there is neither a file nor a shape of that
/// name.
Result<bool> isGraph(const std::string &name);

/// Error (data) where `name` is that of a built-in shape, which has no file. `expected`: what would
/// be right.
Status checkHasFile(const std::string &name, std::string_view expected);

/// The tokenizer of the model `name`, which need not be more than one: a tokenizer's own file, a
/// GGUF file, a folder, or a checkpoint with a tokenizer beside it. Errors (data): there is none.
Result<std::unique_ptr<Tokenizer>> tokenizerOf(const std::string &name);

/// The tokenizer for a model of `words` words: the one at `path`, or, where that is empty, the one
/// found beside its checkpoint. Null, with the reason in `whyNone`, where there is none. Errors:
/// those of `openTokenizer` and `findTokenizer`.
Result<FoundTokenizer> loadTokenizer(const LoadedModel &model, const std::string &path,
                                     int64_t words);

} // namespace heddle
