// Which fusions pay on this machine: measured for the shapes of a model.
#pragma once

#include "frontend/choice_table.h"
#include "frontend/cli/terminal.h"
#include "frontend/load.h"

namespace heddle::command {

/// Runs `model` with all fusions and with each of them left out, times the operations of each shape
/// that a fusion is about, and notes the outcome in `table`. Programs run in turn, several times
/// each, for calls of 1 to 256 tokens. An arm is left unfused where the unfused side was faster in
/// every repetition, at more lengths than the fused one. Errors: those of `compile` and of
/// sessions.
Status tune(const LoadedModel &model, const CompileOptions &options, ChoiceTable &table,
            ProgressLine &progress);

/// The table for people: a line for each choice.
std::string tableText(const ChoiceTable &table);

} // namespace heddle::command
