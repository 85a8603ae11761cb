// What is in a file or folder of a model, and what Heddle makes of it; reads headers only.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/model.h"

#include <optional>
#include <string>
#include <vector>

namespace heddle {

/// A tensor as its file has it, and what becomes of it.
struct InspectedTensor {
  std::string name;
  std::string type; ///< "Q4_K"
  std::vector<int64_t> shape;
  uint64_t bytes = 0;
  std::string use; ///< "layers.0.query, unpacked to f32"; "not used"; empty where there is no model
};

/// A fact about the file that is no tensor: a key of its metadata, a size of the model.
struct InspectedFact {
  std::string name, value;
};

struct Inspection {
  std::string path;
  std::string format;                  ///< "GGUF version 3"
  std::vector<InspectedFact> metadata; ///< as the file has it
  std::vector<InspectedFact> model;    ///< as Heddle understands it; empty where it does not
  std::vector<std::string> unusedKeys; ///< of the file, which Heddle knows and has no use for
  std::vector<InspectedTensor> tensors;
  std::vector<std::string> remarks; ///< why the model cannot be run, what is odd
  bool runs = false;                ///< whether Heddle opens it as a model
  int64_t vocabulary = 0;           ///< words of the model
  int64_t parameters = 0;           ///< of the model
  int64_t unpackedBytes = 0;        ///< memory beside the file, for what is not read as stored
};

/// Looks at `path`. Any file is safe. A file that is whole but no model that Heddle runs, such as a
/// vocabulary, is described, with the reason in `remarks`. Errors (data): missing, damaged, or of a
/// kind that holds no model.
Result<Inspection> inspectFiles(const std::string &path, const OpenOptions &options = {});

/// Describes a model that has no files of weights: a graph, or the text of one at any level. Looks
/// at the same options as `show`. Errors: as for `show`.
Result<Inspection> inspectGraph(const ModelSource &source, const CompileOptions &options = {});

} // namespace heddle
