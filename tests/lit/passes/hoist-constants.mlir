// RUN: heddle-tool opt --hoist-constants --split-input-file %s | FileCheck %s
// RUN: heddle-tool opt --hoist-constants --split-input-file %s --remark-format=emitRemark --remarks-filter=fusion 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The scale of a norm, 1 + w: a result of @load, read as a parameter.

// CHECK: heddle.param @w : tensor<64xf32>
// CHECK-NEXT: heddle.param @scale : tensor<64xf32>
// CHECK-NEXT: func.func @load() -> (tensor<64xf32> {heddle.param = @scale}) {
// CHECK-DAG: %[[W:.*]] = heddle.weight @w
// CHECK-DAG: %[[ONE:.*]] = heddle.constant
// CHECK: %[[SUM:.*]] = heddle.binary add %[[W]], %[[ONE]] {heddle.id = "scale"}
// CHECK-NEXT: return %[[SUM]]
// CHECK: func.func @forward
// CHECK-NEXT: %[[SCALE:.*]] = heddle.weight @scale {heddle.from = ["scale"], heddle.id = "scale"}
// CHECK-NEXT: heddle.norm rms %{{.*}} weight(%[[SCALE]])
// REMARK: remark: [Passed] hoist-constants {{.*}}From=scale, Id=scale
heddle.param @w : tensor<64xf32>
func.func @forward(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = heddle.weight @w : tensor<64xf32>
  %one = heddle.constant dense<1.0> : tensor<f32>
  %scale = heddle.binary add %w, %one {heddle.id = "scale"} : (tensor<64xf32>, tensor<f32>) -> tensor<64xf32>
  %y = heddle.norm rms %x weight(%scale) {epsilon = 1.0e-5 : f64} : (tensor<?x64xf32>, tensor<64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}

// -----

// Weights of products: merged ones, one turned by hand. Of two values, one made of the other, both are kept.

// CHECK: func.func @load() -> (tensor<64x96xf32> {heddle.param = @merged}, tensor<96x64xf32> {heddle.param = @turned}) {
// CHECK: %[[MERGED:.*]] = heddle.concat
// CHECK: %[[TURNED:.*]] = heddle.transpose %[[MERGED]]
// CHECK-NOT: heddle.concat
// CHECK: return %[[MERGED]], %[[TURNED]]
// CHECK: func.func @forward
// CHECK-NOT: heddle.concat
// CHECK: %[[A:.*]] = heddle.weight @merged
// CHECK: %[[B:.*]] = heddle.weight @turned
// CHECK: heddle.matmul %{{.*}}, %[[A]]
// CHECK: heddle.matmul %{{.*}}, %[[B]]
// REMARK: From=merged, Id=merged
// REMARK: From="merged, turned", Id=turned
heddle.param @a : tensor<64x32xf32>
heddle.param @b : tensor<64x64xf32>
func.func @forward(%x: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %a = heddle.weight @a : tensor<64x32xf32>
  %b = heddle.weight @b : tensor<64x64xf32>
  %merged = heddle.concat %a, %b {axis = 1 : i64, heddle.id = "merged"} : (tensor<64x32xf32>, tensor<64x64xf32>) -> tensor<64x96xf32>
  %turned = heddle.transpose %merged {permutation = array<i64: 1, 0>, heddle.id = "turned"} : (tensor<64x96xf32>) -> tensor<96x64xf32>
  %y = heddle.matmul %x, %merged : (tensor<?x64xf32>, tensor<64x96xf32>) -> tensor<?x96xf32>
  %z = heddle.matmul %y, %turned : (tensor<?x96xf32>, tensor<96x64xf32>) -> tensor<?x64xf32>
  return %z : tensor<?x64xf32>
}

// -----

// A table of sines is larger than its frequencies, but dear to compute. Its name is taken by a weight.

// CHECK: heddle.param @table : tensor<4xf32>
// CHECK: heddle.param @table_0 : tensor<16x4xf32>
// CHECK: {heddle.param = @table_0}
// CHECK: heddle.weight @table_0
heddle.param @table : tensor<4xf32>
func.func @forward(%ids: tensor<?xi32>) -> tensor<?x4xf32> {
  %frequencies = heddle.weight @table : tensor<4xf32>
  %positions = heddle.constant dense<0.5> : tensor<16x1xf32>
  %angles = heddle.binary mul %positions, %frequencies {heddle.id = "angles"} : (tensor<16x1xf32>, tensor<4xf32>) -> tensor<16x4xf32>
  %table = heddle.unary sin %angles {heddle.id = "table"} : (tensor<16x4xf32>) -> tensor<16x4xf32>
  %y = heddle.embed %table, %ids : (tensor<16x4xf32>, tensor<?xi32>) -> tensor<?x4xf32>
  return %y : tensor<?x4xf32>
}

// -----

// Not what costs nothing where it is read, nor what is larger than all it is made of and cheap; of the latter, what it is made of.

// CHECK: func.func @load() -> (tensor<8xf32> {heddle.param = @dear}) {
// CHECK: heddle.unary tanh
// CHECK: func.func @forward
// CHECK: %[[DEAR:.*]] = heddle.weight @dear
// CHECK: heddle.reshape
// CHECK: heddle.expand
// CHECK: heddle.binary mul %[[DEAR]], %{{.*}} {heddle.id = "outer"}
// REMARK: remark: [Missed] hoist-constants {{.*}}Id=outer, Reason="its result, [8, 8] f32, is larger than all it is made of: to compute it where it is read costs less"
// REMARK: remark: [Passed] hoist-constants {{.*}}Id=dear
heddle.param @w : tensor<8xf32>
func.func @forward(%x: tensor<?x8x8xf32>) -> (tensor<?x8x8xf32>, tensor<?x8x8xf32>) {
  %w = heddle.weight @w : tensor<8xf32>
  %dear = heddle.unary tanh %w {heddle.id = "dear"} : (tensor<8xf32>) -> tensor<8xf32>
  %column = heddle.reshape %w {shape = array<i64: 8, 1>} : (tensor<8xf32>) -> tensor<8x1xf32>
  %many = heddle.expand %column {shape = array<i64: 8, 8>} : (tensor<8x1xf32>) -> tensor<8x8xf32>
  %outer = heddle.binary mul %dear, %column {heddle.id = "outer"} : (tensor<8xf32>, tensor<8x1xf32>) -> tensor<8x8xf32>
  %y = heddle.binary add %x, %many : (tensor<?x8x8xf32>, tensor<8x8xf32>) -> tensor<?x8x8xf32>
  %z = heddle.binary add %x, %outer : (tensor<?x8x8xf32>, tensor<8x8xf32>) -> tensor<?x8x8xf32>
  return %y, %z : tensor<?x8x8xf32>, tensor<?x8x8xf32>
}

// -----

// Not truth values, which no parameter holds, nor what an argument has a part in.

// CHECK-NOT: func.func @load
// REMARK: remark: [Missed] hoist-constants {{.*}}Id=mask, Reason="its result is [8, 8] i1, parameters hold f32 or bf16"
heddle.param @w : tensor<8x8xf32>
func.func @forward(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %w = heddle.weight @w : tensor<8x8xf32>
  %zero = heddle.constant dense<0.0> : tensor<f32>
  %mask = heddle.binary less %w, %zero {heddle.id = "mask"} : (tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xi1>
  %y = heddle.select %mask, %x, %w : (tensor<8x8xi1>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %z = heddle.binary add %x, %w : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %y, %z : tensor<8x8xf32>, tensor<8x8xf32>
}
