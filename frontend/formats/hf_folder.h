// A model as the transformers library keeps it: a folder with config.json and safetensors files.
#pragma once

#include "frontend/formats/checkpoint.h"

namespace heddle {

/// Opens the folder `path`: config.json, and the weights in model.safetensors, in the files that
/// model.safetensors.index.json lists, or in the only safetensors file there is. Errors: as
/// `openCheckpoint`.
Result<Checkpoint> openHfFolder(const std::string &path, const OpenOptions &options);

/// Opens the safetensors file `path` with the config.json beside it.
Result<Checkpoint> openSafetensors(const std::string &path, const OpenOptions &options);

} // namespace heddle
