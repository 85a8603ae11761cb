// From the tensors of files to the parameters of a model.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/formats/safetensors.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace heddle {

/// The tensor that holds a parameter: all of it, or a part of its rows.
struct Place {
  /// Its name in the file; empty: the scheme knows none. With a '*' each expert has a tensor of its
  /// own, named with its number there.
  std::string published;
  int64_t firstRow = 0;
  int64_t rows = 0; ///< of the whole tensor; 0: it is the parameter
  /// Where its rows do not follow each other: runs of `run` rows, each `stride` after the last.
  int64_t run = 0, stride = 0;
  /// Of experts, their tensors where there is none of all: what older files have, named as above.
  std::string apart = {};
};

/// Where the parameter of this name, of a model of this configuration, is found.
Place placeInTransformers(const ModelConfig &config, std::string_view parameter);
Place placeInGguf(const ModelConfig &config, std::string_view parameter);

/// Tensors of one or several files.
struct StoredFiles {
  std::vector<std::shared_ptr<const runtime::MappedFile>> files;
  std::vector<std::string> names; ///< of the files, for errors
  struct Tensor {
    StoredTensor tensor;
    uint32_t file = 0;
  };
  std::vector<Tensor> tensors = {}; ///< no name twice
};

/// Notes ids that begin or end a text but are outside the vocabulary.
void noteOddMarks(Checkpoint &checkpoint);

/// Where parameters are found, by a naming scheme.
using FindPlace = std::function<Place(const ModelConfig &, std::string_view)>;
/// Why a tensor of this name has no influence; empty where it may have some.
using WhyUnused = std::function<std::string(std::string_view)>;

/// Finds a tensor for each parameter of the model `checkpoint.config` describes, and notes the
/// others as unused: weights of an output that is tied to the embedding, what `why` gives a reason
/// for, and what `options` allow, with a remark. Errors (data), naming the tensor: it is missing;
/// of another shape; of a type that is not read; or left over for no reason.
Status resolveTensors(Checkpoint &checkpoint, const StoredFiles &stored, const FindPlace &place,
                      const WhyUnused &why, const OpenOptions &options);

/// Reads the tensors that are unused because they are copies of others. Error (data): one is not.
Status compareCopies(const Checkpoint &checkpoint);

/// Notes the keys of a configuration that were left out by leave of `options`, and what `options`
/// allow but nothing here is called.
void noteAllowed(Checkpoint &checkpoint, const std::string &configuration,
                 const std::vector<std::string> &leftOut, const OpenOptions &options);

} // namespace heddle
