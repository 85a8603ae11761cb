// RUN: heddle-opt --remove-redundant %s | FileCheck %s

heddle.param @w : tensor<8x8xf32>

// Two operations are one when they agree, whatever they are called; what follows then agrees too.
// CHECK-LABEL: func.func @same
func.func @same(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK: %[[W:.*]] = heddle.weight @w
  // CHECK-NOT: heddle.weight
  %w1 = heddle.weight @w : tensor<8x8xf32>
  %w2 = heddle.weight @w : tensor<8x8xf32>
  // CHECK: %[[A:.*]] = heddle.matmul %{{.*}}, %[[W]] {heddle.id = "first"}
  %a = heddle.matmul %x, %w1 {heddle.id = "first"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = heddle.matmul %x, %w2 {heddle.id = "second"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: %[[S:.*]] = heddle.binary add %[[A]], %[[A]]
  %s = heddle.binary add %a, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  // CHECK-NEXT: return %[[S]]
  return %s : tensor<?x8xf32>
}

// An attribute that means something keeps them apart.
// CHECK-LABEL: func.func @different
func.func @different(%x: tensor<?x8xf32>, %w: tensor<8x8xf32>) -> tensor<?x8xf32> {
  // CHECK: heddle.matmul
  // CHECK: heddle.matmul {{.*}} {transpose_rhs}
  %a = heddle.matmul %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %b = heddle.matmul %x, %w {transpose_rhs} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %s = heddle.binary sub %a, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// A chain that nothing uses goes from its end.
// CHECK-LABEL: func.func @unused
func.func @unused(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  // CHECK-NEXT: return
  %a = heddle.unary exp %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %b = heddle.unary log %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %x : tensor<?x8xf32>
}
