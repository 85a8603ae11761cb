// What the fusions say about themselves: where each one fired, and where it nearly did and what
// stopped it. Remarks go to the remark engine of the context, if it has one.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Operation.h"

#include <string>
#include <vector>

namespace heddle::passes {

/// A fusion that happened, or nearly did.
struct FusionRemark {
  /// The name of the pass.
  std::string pass;
  /// True where it fired, false where something stopped it.
  bool fired = false;
  /// What measurements of it are told apart by; empty where none are.
  std::string shape;
  /// Not fired because it does not pay: what was measured.
  std::string declined;
  /// The id of the operation it made, or of the one it could not fuse.
  std::string id;
  /// Fired: the ids of the operations fused, in their order.
  std::vector<std::string> from;
  /// Not fired: what stopped it.
  std::string reason;
  /// Not fired: what the user could do about it; may be empty.
  std::string remedy;
  /// Where the user wrote it, `file:line`, as far as that is known.
  std::vector<std::string> places;
};

/// Collects the remarks of passes run in a context while it lives. Replaces a remark engine that
/// the context has, and leaves it with none.
class RemarkCollector {
public:
  explicit RemarkCollector(mlir::MLIRContext &context);
  ~RemarkCollector();
  RemarkCollector(const RemarkCollector &) = delete;
  RemarkCollector &operator=(const RemarkCollector &) = delete;

  const std::vector<FusionRemark> &remarks() const { return collected; }

private:
  mlir::MLIRContext &context;
  std::vector<FusionRemark> collected;
};

/// Says that `pass` made `op`, whose ids tell from what. `shape` is what measurements of it are
/// told apart by.
void remarkFired(llvm::StringRef pass, mlir::Operation *op, llvm::StringRef shape = "");

/// Says that `pass` left `op` as it is, since fusing operations of this shape was measured not to
/// pay.
void remarkDeclined(llvm::StringRef pass, mlir::Operation *op, llvm::StringRef shape,
                    llvm::StringRef why);

/// Why something was not fused, and what to do about it; empty where it does not look like it.
struct Miss {
  std::string reason, remedy;
};

/// Says that `pass` would have fused `op`, but for `reason`, and what the author of the model can
/// do about it, or why it is as well. Both texts are in lower case without a full stop and name
/// operations by their ids.
void remarkMissed(llvm::StringRef pass, mlir::Operation *op, const llvm::Twine &reason,
                  const llvm::Twine &remedy);

/// What can be done where a second reader of a value is in the way.
inline constexpr llvm::StringLiteral oneReaderRemedy =
    "let one operation alone read it: the other can read what is made of it, or make it once more";

} // namespace heddle::passes
