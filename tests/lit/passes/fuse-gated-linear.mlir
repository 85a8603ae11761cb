// RUN: heddle-opt --fuse-gated-linear %s | FileCheck %s
// RUN: heddle-opt --fuse-gated-linear --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @g : tensor<64x172xf32>
heddle.param @u : tensor<64x172xf32>
heddle.param @v : tensor<64x172xbf16>

// The product under the activation comes first, whatever the order of the text.
// CHECK-LABEL: func.func @swiglu
func.func @swiglu(%x: tensor<?x64xf32>) -> tensor<?x172xf32> {
  // CHECK: %[[G:.*]] = heddle.weight @g
  // CHECK: %[[U:.*]] = heddle.weight @u
  // CHECK-NEXT: heddle.gated_linear %{{.*}}, %[[G]], %[[U]] {heddle.from = ["up", "gate", "act", "product"], heddle.id = "product"}
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32):
  // CHECK:        %[[A:.*]] = arith.divf %[[P]]
  // CHECK-NEXT:   %[[M:.*]] = arith.mulf %[[A]], %[[Q]]
  // CHECK-NEXT:   heddle.yield %[[M]]
  // CHECK-NEXT: }
  // CHECK-NEXT: return
  // REMARK: remark: [Passed] fuse-gated-linear {{.*}}From="up, gate, act, product", Id=product
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  %q = heddle.matmul %x, %u {heddle.id = "up"} : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %p = heddle.matmul %x, %g {heddle.id = "gate"} : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %a = heddle.unary silu %p {heddle.id = "act"} : (tensor<?x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %a, %q {heddle.id = "product"} : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  return %m : tensor<?x172xf32>
}

// Biases on both sides are read as extras.
// CHECK-LABEL: func.func @biases
func.func @biases(%x: tensor<?x64xf32>, %b: tensor<172xf32>, %c: tensor<172xf32>) -> tensor<?x172xf32> {
  // CHECK: heddle.gated_linear %{{.*}}, %{{.*}}, %{{.*}}(%arg1, %arg2)
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32, %{{.*}}: f32):
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  %p = heddle.matmul %x, %g : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %x, %u : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %pb = heddle.binary add %p, %b : (tensor<?x172xf32>, tensor<172xf32>) -> tensor<?x172xf32>
  %qc = heddle.binary add %q, %c : (tensor<?x172xf32>, tensor<172xf32>) -> tensor<?x172xf32>
  %a = heddle.unary gelu_tanh %pb : (tensor<?x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %a, %qc : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  return %m : tensor<?x172xf32>
}

// Not for weights of two types.
// CHECK-LABEL: func.func @two_types
func.func @two_types(%x: tensor<?x64xf32>) -> tensor<?x172xf32> {
  // CHECK-NOT: heddle.gated_linear
  // CHECK: return
  // REMARK: remark: [Missed] fuse-gated-linear {{.*}}Id=gate, Reason="its weight is [64, 172] f32 and that of 'up' is [64, 172] bf16"{{.*}}Remedy="store both weights in one type and orientation"
  %g = heddle.weight @g : tensor<64x172xf32>
  %v = heddle.weight @v : tensor<64x172xbf16>
  %p = heddle.matmul %x, %g {heddle.id = "gate"} : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %x, %v {heddle.id = "up"} : (tensor<?x64xf32>, tensor<64x172xbf16>) -> tensor<?x172xf32>
  %a = heddle.unary silu %p : (tensor<?x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %a, %q : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  return %m : tensor<?x172xf32>
}

// Not for two inputs.
// CHECK-LABEL: func.func @two_inputs
func.func @two_inputs(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> tensor<?x172xf32> {
  // CHECK-NOT: heddle.gated_linear
  // CHECK: return
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  %p = heddle.matmul %x, %g : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %y, %u : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %a = heddle.unary silu %p : (tensor<?x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %a, %q : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  return %m : tensor<?x172xf32>
}

// Not where something before the gate is used elsewhere.
// CHECK-LABEL: func.func @second_use
func.func @second_use(%x: tensor<?x64xf32>) -> (tensor<?x172xf32>, tensor<?x172xf32>) {
  // CHECK-NOT: heddle.gated_linear
  // CHECK: return
  // REMARK: remark: [Missed] fuse-gated-linear {{.*}}Function=second_use {{.*}}Reason="'act' is also used by 'func.return'"
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  %p = heddle.matmul %x, %g : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %x, %u : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %a = heddle.unary silu %p {heddle.id = "act"} : (tensor<?x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %a, %q : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  return %m, %a : tensor<?x172xf32>, tensor<?x172xf32>
}

// Query, key and value share an input, but never meet elementwise.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<?x64xf32>) -> (tensor<?x172xf32>, tensor<?x172xf32>) {
  // CHECK-NOT: heddle.gated_linear
  // CHECK: return
  // REMARK-NOT: Function=apart
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  %p = heddle.matmul %x, %g : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %x, %u : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  return %p, %q : tensor<?x172xf32>, tensor<?x172xf32>
}
