// A model in a GGUF file.
#pragma once

#include "frontend/formats/checkpoint.h"

namespace heddle {

/// Opens the model in `file`, a GGUF file at `path`. Errors: as `openCheckpoint`; a file that holds
/// a vocabulary and no model.
Result<Checkpoint> openGguf(std::shared_ptr<const runtime::MappedFile> file,
                            const std::string &path, const OpenOptions &options);

} // namespace heddle
