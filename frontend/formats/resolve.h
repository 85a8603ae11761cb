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
using FindPlace = Place (*)(const ModelConfig &, std::string_view);

/// Removes the weights of the output of a model whose embedding is tied. Error (data): they differ
/// from the embedding's.
Status dropTiedOutput(StoredFiles &stored, const ModelConfig &config, FindPlace place);

/// Finds a tensor for each parameter of the model `checkpoint.config` describes. Errors (data),
/// naming the tensor: it is missing; of another shape; of a type that is not read; or left over,
/// unless `isHarmless` says that it has no influence or `options` allow it.
Status resolveTensors(Checkpoint &checkpoint, const StoredFiles &stored, FindPlace place,
                      bool (*isHarmless)(std::string_view), const OpenOptions &options);

} // namespace heddle
