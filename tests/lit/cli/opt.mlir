// `heddle opt` is a whole mlir-opt.
// RUN: heddle opt --split-input-file --verify-diagnostics --remove-redundant --verify-each %s
// RUN: heddle opt --split-input-file --mlir-timing --fuse-elementwise %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=TIMING
// RUN: heddle opt --split-input-file --mlir-print-ir-after-all --heddle-fuse %s -o /dev/null 2>&1 | FileCheck %s --check-prefix=AFTER
// RUN: heddle opt --help | FileCheck %s --check-prefix=HELP

// TIMING: Execution time report
// TIMING: FuseElementwise
// AFTER: IR Dump After AssignIds
// AFTER: IR Dump After FuseAttention
// HELP-DAG: --fuse-attention
// HELP-DAG: --heddle-fuse
// HELP-DAG: --lower-to-loops
// HELP-DAG: --convert-vector-to-llvm

func.func @right(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %y = heddle.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

func.func @right_too(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}
