// fuse-rotation: rotations by the same positions and frequencies share one table of factors.
//
// Rotates that agree in everything but what they turn are counted; where there are two or more,
// each becomes a turn by the table that is made once, behind the positions.
#include "passes/passes.h"
#include "passes/provenance.h"
#include "passes/remarks.h"
#include "passes/rotation.h"

using namespace mlir;

namespace heddle::passes {

#define GEN_PASS_DEF_FUSEROTATION
#include "passes/passes.h.inc"

namespace {

struct FuseRotation : impl::FuseRotationBase<FuseRotation> {
  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      SmallVector<SmallVector<Rotation>> groups;
      for (ir::RotateOp rotate : block.getOps<ir::RotateOp>()) {
        Rotation rotation = Rotation::of(rotate.getResult());
        auto *group =
            llvm::find_if(groups, [&](auto &group) { return group.front().agreesWith(rotation); });
        if (group == groups.end())
          groups.push_back({rotation});
        else
          group->push_back(rotation);
      }
      for (SmallVector<Rotation> &group : groups)
        fuse(group);
    }
  }

  void fuse(ArrayRef<Rotation> rotations) {
    if (rotations.size() < 2)
      return remarkMissed(getArgument(), rotations.front().operation(),
                          "no other rotation has its positions and frequencies",
                          "nothing is lost by it: a table that is read once saves nothing");
    for (const Rotation &rotation : rotations) {
      Operation *rotate = rotation.operation();
      Value table = rotation.table();
      OpBuilder builder(rotate);
      auto turn = ir::TurnOp::create(builder, rotate->getLoc(), rotate->getResult(0).getType(),
                                     rotation.pairing(), rotation.input(), table);
      inheritIds(turn, {rotate});
      rotate->replaceAllUsesWith(turn);
      rotate->erase();
      ++fused;
      remarkFired(getArgument(), turn);
    }
  }
};

} // namespace
} // namespace heddle::passes
