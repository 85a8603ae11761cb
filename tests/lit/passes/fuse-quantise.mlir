// RUN: heddle-opt --fuse-quantise %s | FileCheck %s
// RUN: heddle-opt --fuse-quantise --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @n : tensor<256xf32>
heddle.param @a : tensor<96x256x!heddle.blocks<q8_0>>
heddle.param @b : tensor<256x256x!heddle.blocks<q8_0>>
heddle.param @k : tensor<256x256x!heddle.blocks<q4_k>>
heddle.param @f : tensor<256x256xf32>

// Two products of one norm: it has their blocks as its result, and they are operations that take them.
// CHECK-LABEL: func.func @two
// CHECK: %[[N:.*]] = heddle.norm rms %arg0 weight(%{{.*}}) {{.*}}heddle.id = "norm"{{.*}} -> tensor<?x256x!heddle.blocks<row32>>
// CHECK: %[[A:.*]] = heddle.linear %[[N]], %{{.*}} {heddle.id = "a", transpose_rhs} : (tensor<?x256x!heddle.blocks<row32>>
// CHECK: heddle.linear %[[N]], %{{.*}} {heddle.id = "b", transpose_rhs}
// REMARK: remark: [Passed] fuse-quantise {{.*}}Function=two {{.*}}From=norm, Id=norm, Shape="?x256xf32 !heddle.blocks<row32>"
func.func @two(%x: tensor<?x256xf32>) -> (tensor<?x96xf32>, tensor<?x256xf32>) {
  %n = heddle.weight @n : tensor<256xf32>
  %a = heddle.weight @a : tensor<96x256x!heddle.blocks<q8_0>>
  %b = heddle.weight @b : tensor<256x256x!heddle.blocks<q8_0>>
  %h = heddle.norm rms %x weight(%n) {epsilon = 1.0e-05 : f64, heddle.id = "norm"} : (tensor<?x256xf32>, tensor<256xf32>) -> tensor<?x256xf32>
  %y = heddle.matmul %h, %a {heddle.id = "a", transpose_rhs} : (tensor<?x256xf32>, tensor<96x256x!heddle.blocks<q8_0>>) -> tensor<?x96xf32>
  %z = heddle.matmul %h, %b {heddle.id = "b", transpose_rhs} : (tensor<?x256xf32>, tensor<256x256x!heddle.blocks<q8_0>>) -> tensor<?x256xf32>
  return %y, %z : tensor<?x96xf32>, tensor<?x256xf32>
}

// Not where a residual, a product in f32 or a product that takes other blocks reads the norm, nor for weights in f32.
// CHECK-LABEL: func.func @other_uses
// CHECK-COUNT-4: heddle.norm {{.*}} -> tensor<?x256xf32>
// CHECK-NOT: heddle.linear
// REMARK: remark: [Missed] fuse-quantise {{.*}}Id=kept, Reason="'sum' also reads its rows, in f32"
// REMARK: remark: [Missed] fuse-quantise {{.*}}Id=wide, Reason="'f' also reads its rows, in f32"
// REMARK: remark: [Missed] fuse-quantise {{.*}}Id=mixed, Reason="'s' and 't' take blocks of different kinds", Remedy="give their weights one type"
// REMARK-NOT: Id=plain
func.func @other_uses(%x: tensor<?x256xf32>) -> (tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>) {
  %b = heddle.weight @b : tensor<256x256x!heddle.blocks<q8_0>>
  %k = heddle.weight @k : tensor<256x256x!heddle.blocks<q4_k>>
  %f = heddle.weight @f : tensor<256x256xf32>
  %kept = heddle.norm rms %x {epsilon = 1.0e-05 : f64, heddle.id = "kept"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %p = heddle.matmul %kept, %b {transpose_rhs} : (tensor<?x256xf32>, tensor<256x256x!heddle.blocks<q8_0>>) -> tensor<?x256xf32>
  %sum = heddle.binary add %kept, %p {heddle.id = "sum"} : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
  %wide = heddle.norm rms %sum {epsilon = 1.0e-05 : f64, heddle.id = "wide"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %q = heddle.matmul %wide, %b {transpose_rhs} : (tensor<?x256xf32>, tensor<256x256x!heddle.blocks<q8_0>>) -> tensor<?x256xf32>
  %r = heddle.matmul %wide, %f {heddle.id = "f"} : (tensor<?x256xf32>, tensor<256x256xf32>) -> tensor<?x256xf32>
  %mixed = heddle.norm rms %r {epsilon = 1.0e-05 : f64, heddle.id = "mixed"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %s = heddle.matmul %mixed, %b {heddle.id = "s", transpose_rhs} : (tensor<?x256xf32>, tensor<256x256x!heddle.blocks<q8_0>>) -> tensor<?x256xf32>
  %t = heddle.matmul %mixed, %k {heddle.id = "t", transpose_rhs} : (tensor<?x256xf32>, tensor<256x256x!heddle.blocks<q4_k>>) -> tensor<?x256xf32>
  %plain = heddle.norm rms %t {epsilon = 1.0e-05 : f64, heddle.id = "plain"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %u = heddle.matmul %plain, %f : (tensor<?x256xf32>, tensor<256x256xf32>) -> tensor<?x256xf32>
  return %sum, %q, %r, %s, %t, %u : tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>, tensor<?x256xf32>
}

// The products of experts; the first of two readers that want f32 is the one that is told.
heddle.param @e : tensor<4x96x256x!heddle.blocks<q8_0>>
// CHECK-LABEL: func.func @experts
// CHECK: %[[N:.*]] = heddle.norm rms %arg0 {{.*}} -> tensor<?x256x!heddle.blocks<row32>>
// CHECK: heddle.expert_linear %[[N]], %{{.*}} experts(%arg1) {heddle.id = "chosen"} : (tensor<?x256x!heddle.blocks<row32>>, tensor<4x96x256x!heddle.blocks<q8_0>>
// CHECK: heddle.norm rms %arg0 {{.*}}heddle.id = "scored"{{.*}} -> tensor<?x256xf32>
// REMARK: remark: [Passed] fuse-quantise {{.*}}Function=experts {{.*}}Id=norm
// REMARK: remark: [Missed] fuse-quantise {{.*}}Id=scored, Reason="'scores' also reads its rows, in f32"
func.func @experts(%x: tensor<?x256xf32>, %ids: tensor<?x2xi32>) -> (tensor<?x2x96xf32>, tensor<?x256xf32>, tensor<?x2x96xf32>, tensor<?x256xf32>) {
  %e = heddle.weight @e : tensor<4x96x256x!heddle.blocks<q8_0>>
  %f = heddle.weight @f : tensor<256x256xf32>
  %h = heddle.norm rms %x {epsilon = 1.0e-05 : f64, heddle.id = "norm"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %y = heddle.expert_matmul %h, %e experts(%ids) {heddle.id = "chosen"} : (tensor<?x256xf32>, tensor<4x96x256x!heddle.blocks<q8_0>>, tensor<?x2xi32>) -> tensor<?x2x96xf32>
  %s = heddle.norm rms %x {epsilon = 1.0e-05 : f64, heddle.id = "scored"} : (tensor<?x256xf32>) -> tensor<?x256xf32>
  %a = heddle.matmul %s, %f {heddle.id = "scores"} : (tensor<?x256xf32>, tensor<256x256xf32>) -> tensor<?x256xf32>
  %z = heddle.expert_matmul %s, %e experts(%ids) : (tensor<?x256xf32>, tensor<4x96x256x!heddle.blocks<q8_0>>, tensor<?x2xi32>) -> tensor<?x2x96xf32>
  %b = heddle.binary add %s, %a {heddle.id = "sum"} : (tensor<?x256xf32>, tensor<?x256xf32>) -> tensor<?x256xf32>
  return %y, %a, %z, %b : tensor<?x2x96xf32>, tensor<?x256xf32>, tensor<?x2x96xf32>, tensor<?x256xf32>
}

// Nor where rows are narrow.
heddle.param @small : tensor<64x64x!heddle.blocks<q8_0>>
// CHECK-LABEL: func.func @narrow
// CHECK: heddle.norm {{.*}} -> tensor<?x64xf32>
// REMARK: remark: [Missed] fuse-quantise {{.*}}Id=narrow, Reason="its rows have less than 256 columns"
func.func @narrow(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = heddle.weight @small : tensor<64x64x!heddle.blocks<q8_0>>
  %h = heddle.norm rms %x {epsilon = 1.0e-05 : f64, heddle.id = "narrow"} : (tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = heddle.matmul %h, %w {transpose_rhs} : (tensor<?x64xf32>, tensor<64x64x!heddle.blocks<q8_0>>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
