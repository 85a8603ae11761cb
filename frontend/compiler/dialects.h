// Every dialect that a level of Heddle's text may hold.
#pragma once

namespace mlir {
class DialectRegistry;
}

namespace heddle {

/// Registers the heddle dialect and the upstream ones of level loops and below.
void registerAllHeddleDialects(mlir::DialectRegistry &registry);

} // namespace heddle
