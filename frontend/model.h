// From a graph to a model that runs, and what lies between.
#pragma once

#include "frontend/graph.h"
#include "frontend/session.h"
#include "frontend/weight_type.h"
#include "runtime/weights.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The forms a model takes on its way to code; see the project's README for a picture.
enum class Level { graph, fused, planned, loops, llvm, assembly };

/// Which of a model's two programs: for many tokens in a call, or for few.
enum class Phase { prefill, decode };

/// The model to compile: a graph, or the text of one at any level from graph to loops.
class ModelSource {
public:
  /// Errors of the graph come out when it is used.
  ModelSource(const Graph &graph);

  /// `name` stands in errors for the text's file.
  static ModelSource fromText(std::string text, std::string name);

  /// The graph's text with the places of its calls, or what kept it from being made.
  const Result<std::string> &text() const { return content; }
  const std::string &name() const { return title; }

private:
  ModelSource(Result<std::string> content, std::string title)
      : content(std::move(content)), title(std::move(title)) {}

  Result<std::string> content;
  std::string title;
};

class ChoiceTable;
struct ModelInfo;

/// How far a compilation has come.
struct Progress {
  std::string_view stage; ///< "compile", or the parameter being prepared
  int64_t done = 0;
  int64_t total = 0;
};

struct CompileOptions {
  /// Fusions to make: `all`, `none`, `NAME,...` or `all,-NAME,...`; none said: all. Those that are
  /// named are made whatever was measured. An error for text that is fused already.
  std::optional<std::string> fuse = std::nullopt;
  /// Type of the weights of products and of embedding tables; none said: as the graph says. An
  /// error for text of level planned or loops.
  std::optional<WeightType> dtype = std::nullopt;
  /// What the KV cache stores its entries as; none said: f32 where all weights are, else bf16, or,
  /// where no `dtype` is said either, as the graph says. An error for a model without a cache and
  /// for text of level planned or loops.
  std::optional<CacheElement> kv = std::nullopt;
  /// Instructions to use: `avx2`, `avx512`, `avx512_vnni`, `avx512_bf16`, or `native`, the best
  /// this processor has; none said: native. An error for text of level planned or loops.
  std::optional<std::string> isa = std::nullopt;
  /// What measurement declines, except fusions that `fuse` names; null: the table that comes with
  /// Heddle.
  std::shared_ptr<const ChoiceTable> plan = nullptr;
  /// Calls of at most so many tokens run the decode program, longer ones the prefill program, which
  /// gives the same; none said: what is faster with these instructions.
  std::optional<int64_t> decodeTokens = std::nullopt;
  /// Threads to compile and to prepare weights with; 0: the cores this process may use.
  int threads = 0;
  std::function<void(const Progress &)> progress = {};
  /// Called by `compile` with what the source says of the model (as `inspect` gives it), once it is
  /// read and the weights are found to fit, before anything is compiled; an error ends it there.
  std::function<Status(const ModelInfo &)> check = {};
  /// Where compiled code is kept for the next time; empty: nowhere. A folder of the user's alone,
  /// else it is not used: ModelInfo::cacheMiss tells.
  std::string cacheFolder = "";
};

/// The model as text at `level`. Looks at `fuse`, `dtype`, `kv`, `isa` and `plan`. Never touches
/// weights. Without a phase that of the text, where it is planned, else prefill.
/// Errors: those of the graph or the text, an option that is unknown, an instruction set this
/// processor lacks, a level above the text's own, another phase than it is planned for.
Result<std::string> show(const ModelSource &source, Level level,
                         std::optional<Phase> phase = std::nullopt,
                         const CompileOptions &options = {});

/// What a compiled model is.
struct ModelInfo {
  std::string name;
  std::string isa;                      ///< the instructions it uses
  std::string fuse;                     ///< the fusions that were on
  ElementType dtype = ElementType::f32; ///< of most of its weights
  int64_t vocabulary = 0;               ///< ids it takes are below this
  int64_t words = 0;                    ///< logits of a row
  int64_t context = 0;                  ///< the longest sequence it is made for; 0: not said
  int64_t longest = 0;     ///< positions in its table, beyond which it cannot go; 0: no table
  bool looksAhead = false; ///< tokens see later ones, so that a prompt is run in one piece
  bool hasCache = false;
  runtime::CacheShape cache; ///< where it has one
  int64_t kernels = 0;       ///< compiled functions
  int64_t compiled = 0;      ///< those of them that were not kept from an earlier time
  int64_t weightBytes = 0;   ///< of the weights as the kernels read them
  int64_t cacheBytesPerToken = 0;
  std::string cacheMiss;    ///< why it was compiled, though there is a folder; empty: it was not
  bool cacheFaulty = false; ///< and that is more than a first time
  double lowerSeconds = 0;  ///< from text to loops, or to finding that they are compiled
  double codeSeconds = 0;   ///< from loops to machine code
  double weightSeconds = 0; ///< to find or make the weights and pack them
};

/// One argument of a model.
struct ModelInput {
  enum class Kind { tensor, ids, vectors, sequences, cache };
  Kind kind = Kind::tensor;
  std::string name;       ///< as the graph names it; may be empty
  int64_t vocabulary = 0; ///< of ids: they must be below this
};

namespace detail {
struct ModelState;
}

/// Compiled code with its weights bound. Immutable and cheap to copy; what it uses lives as long as
/// a copy or a session of it does.
class Model {
public:
  const ModelInfo &info() const;
  const std::vector<ModelInput> &inputs() const;

  /// Starts a session. Errors: a context beyond what the model can do, more memory than this
  /// process may have, a model whose arguments are not one batch of ids (and others by name) and a
  /// cache.
  Result<Session> session(const SessionOptions &options = {}) const;

  /// The programs themselves, for calls with other arguments.
  std::shared_ptr<const runtime::ProgramSet> programs() const;

private:
  friend struct detail::ModelState;
  explicit Model(std::shared_ptr<const detail::ModelState> state) : state(std::move(state)) {}
  std::shared_ptr<const detail::ModelState> state;
};

/// What the source alone says of the model: its name, words, vocabulary and context, whether it has
/// a cache. Compiles nothing. Errors: as for `show`; `weights`, if given, that do not fit it.
Result<ModelInfo> inspect(const ModelSource &source, const CompileOptions &options = {},
                          const runtime::WeightStore *weights = nullptr);

/// Whether a session can be had: its context and the memory of its cache, as far as `info` tells of
/// them before anything is compiled. Errors: as for `Model::session`.
Status checkMemoryOfSession(const ModelInfo &info, const SessionOptions &options);

/// Compiles a model and binds its weights. One compilation serves calls of every length. Errors: as
/// for `show`, and those of the weights: a parameter that is missing or of another shape.
Result<Model> compile(const ModelSource &source, const CompileOptions &options,
                      std::shared_ptr<runtime::WeightStore> weights);

/// How many compilations this process has done.
int64_t compilations();

} // namespace heddle
