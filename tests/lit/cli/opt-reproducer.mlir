// A pass that fails leaves what is needed to see it fail again.
// RUN: not heddle opt --lower-to-loops --mlir-pass-pipeline-crash-reproducer=%t.mlir %s
// RUN: FileCheck %s --check-prefix=REPRODUCER < %t.mlir
// RUN: not heddle opt --run-reproducer %t.mlir 2>&1 | FileCheck %s

// REPRODUCER: func.func @forward
// REPRODUCER: mlir_reproducer
// REPRODUCER: lower-to-loops
// CHECK: error: needs a planned function @forward

func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  return %x : tensor<?x8xf32>
}
