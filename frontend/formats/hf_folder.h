// A model as the transformers library keeps it: a folder with config.json and safetensors files.
#pragma once

#include "frontend/formats/checkpoint.h"
#include "frontend/formats/resolve.h"

namespace heddle {

/// Opens the folder `path`: config.json, and the weights in model.safetensors, in the files that
/// model.safetensors.index.json lists, or in the only safetensors file there is. Errors: as
/// `openCheckpoint`.
Result<Checkpoint> openHfFolder(const std::string &path, const OpenOptions &options);

/// Opens the weights of the folder `path`, whatever model its config.json describes. Errors: of
/// these files, and a config.json that is missing or no JSON.
Result<StoredFiles> openHfWeights(const std::string &path);

/// "safetensors, 3 files".
std::string formatOf(const StoredFiles &stored);

/// Opens the safetensors file `path` with the config.json beside it.
Result<Checkpoint> openSafetensors(const std::string &path, const OpenOptions &options);

} // namespace heddle
