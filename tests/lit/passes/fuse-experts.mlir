// RUN: heddle-opt --fuse-gated-linear --fuse-epilogue %s | FileCheck %s
// RUN: heddle-opt --fuse-gated-linear --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// What follows the products of experts.

heddle.param @g : tensor<4x24x16xf32>
heddle.param @u : tensor<4x24x16xf32>
heddle.param @d : tensor<4x16x24xf32>
heddle.param @v : tensor<4x24x16xbf16>

// CHECK-LABEL: func.func @mixture
func.func @mixture(%x: tensor<?x16xf32>, %s: tensor<?x2x1xf32>, %ids: tensor<?x2xi32>) -> tensor<?x2x16xf32> {
  // CHECK: %[[G:.*]] = heddle.weight @g
  // CHECK: %[[U:.*]] = heddle.weight @u
  // CHECK: %[[D:.*]] = heddle.weight @d
  // CHECK: %[[H:.*]] = heddle.expert_linear %arg0, %[[G]], %[[U]] experts(%arg2) {heddle.from = ["up", "gate", "act", "gated"]
  // CHECK: heddle.expert_linear %[[H]], %[[D]] experts(%arg2) (%arg1)
  // CHECK-NEXT: ^bb0(%[[P:.*]]: f32, %[[Q:.*]]: f32):
  // CHECK-NEXT:   arith.mulf %[[P]], %[[Q]]
  // REMARK: remark: [Passed] fuse-gated-linear {{.*}}From="up, gate, act, gated", Id=gated
  %g = heddle.weight @g : tensor<4x24x16xf32>
  %u = heddle.weight @u : tensor<4x24x16xf32>
  %d = heddle.weight @d : tensor<4x16x24xf32>
  %q = heddle.expert_matmul %x, %u experts(%ids) {heddle.id = "up"} : (tensor<?x16xf32>, tensor<4x24x16xf32>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %p = heddle.expert_matmul %x, %g experts(%ids) {heddle.id = "gate"} : (tensor<?x16xf32>, tensor<4x24x16xf32>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %a = heddle.unary silu %p {heddle.id = "act"} : (tensor<?x2x24xf32>) -> tensor<?x2x24xf32>
  %m = heddle.binary mul %a, %q {heddle.id = "gated"} : (tensor<?x2x24xf32>, tensor<?x2x24xf32>) -> tensor<?x2x24xf32>
  %y = heddle.expert_matmul %m, %d experts(%ids) {heddle.id = "down"} : (tensor<?x2x24xf32>, tensor<4x16x24xf32>, tensor<?x2xi32>) -> tensor<?x2x16xf32>
  %w = heddle.binary mul %y, %s {heddle.id = "weighted"} : (tensor<?x2x16xf32>, tensor<?x2x1xf32>) -> tensor<?x2x16xf32>
  return %w : tensor<?x2x16xf32>
}

// Two choices are two products.
// CHECK-LABEL: func.func @other_choice
func.func @other_choice(%x: tensor<?x16xf32>, %ids: tensor<?x2xi32>, %others: tensor<?x2xi32>) -> tensor<?x2x24xf32> {
  // CHECK: heddle.expert_matmul
  // CHECK: heddle.expert_linear %arg0, %{{.*}} experts(%arg1) (%{{.*}})
  %g = heddle.weight @g : tensor<4x24x16xf32>
  %u = heddle.weight @u : tensor<4x24x16xf32>
  %p = heddle.expert_matmul %x, %g experts(%ids) : (tensor<?x16xf32>, tensor<4x24x16xf32>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %q = heddle.expert_matmul %x, %u experts(%others) : (tensor<?x16xf32>, tensor<4x24x16xf32>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %m = heddle.binary mul %p, %q : (tensor<?x2x24xf32>, tensor<?x2x24xf32>) -> tensor<?x2x24xf32>
  return %m : tensor<?x2x24xf32>
}

// CHECK-LABEL: func.func @other_type
func.func @other_type(%x: tensor<?x16xf32>, %ids: tensor<?x2xi32>) -> tensor<?x2x24xf32> {
  // CHECK-NOT: expert_linear {{.*}}, {{.*}}, {{.*}} experts
  // REMARK: remark: [Missed] fuse-gated-linear {{.*}}its weight is [4, 24, 16] f32
  %g = heddle.weight @g : tensor<4x24x16xf32>
  %v = heddle.weight @v : tensor<4x24x16xbf16>
  %p = heddle.expert_matmul %x, %g experts(%ids) : (tensor<?x16xf32>, tensor<4x24x16xf32>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %q = heddle.expert_matmul %x, %v experts(%ids) : (tensor<?x16xf32>, tensor<4x24x16xbf16>, tensor<?x2xi32>) -> tensor<?x2x24xf32>
  %m = heddle.binary mul %p, %q : (tensor<?x2x24xf32>, tensor<?x2x24xf32>) -> tensor<?x2x24xf32>
  return %m : tensor<?x2x24xf32>
}
