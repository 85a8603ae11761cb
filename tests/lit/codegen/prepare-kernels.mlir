// RUN: heddle opt %s -split-input-file -prepare-kernels | FileCheck %s

// The input of products with bf16 weights is rounded once for all of them; a product with a weight
// is a linear whose region does nothing.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[R:.*]] = heddle.map(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xbf16>
// CHECK: arith.truncf
// CHECK: heddle.linear %[[R]], %{{.*}} {heddle.id = "first"}
// CHECK-NEXT: ^bb0(%[[P:.*]]: f32):
// CHECK-NEXT: heddle.yield %[[P]] : f32
// CHECK-NOT: arith.truncf
// CHECK: heddle.linear %[[R]], %{{.*}} {heddle.id = "second"}
heddle.param @a : tensor<4x8xbf16>
heddle.param @b : tensor<4x8xbf16>
func.func @rounded(%x: tensor<?x4xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %a = heddle.weight @a : tensor<4x8xbf16>
  %b = heddle.weight @b : tensor<4x8xbf16>
  %y = heddle.matmul %x, %a {heddle.id = "first"} : (tensor<?x4xf32>, tensor<4x8xbf16>) -> tensor<?x8xf32>
  %z = heddle.matmul %x, %b {heddle.id = "second"} : (tensor<?x4xf32>, tensor<4x8xbf16>) -> tensor<?x8xf32>
  return %y, %z : tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// A bf16 input of an f32 weight is widened.
// CHECK-LABEL: func.func @widened
// CHECK: %[[W:.*]] = heddle.map(%arg0) : (tensor<?x4xbf16>) -> tensor<?x4xf32>
// CHECK: arith.extf
// CHECK: heddle.linear %[[W]]
heddle.param @a : tensor<4x8xf32>
func.func @widened(%x: tensor<?x4xbf16>) -> tensor<?x8xf32> {
  %a = heddle.weight @a : tensor<4x8xf32>
  %y = heddle.matmul %x, %a : (tensor<?x4xbf16>, tensor<4x8xf32>) -> tensor<?x8xf32>
  return %y : tensor<?x8xf32>
}

// -----

// What is returned twice, or is an argument, is copied.
// CHECK-LABEL: func.func @returned
// CHECK: %[[N:.*]] = heddle.map(%arg0) {heddle.id = "neg"}
// CHECK: %[[AGAIN:.*]] = heddle.map(%[[N]]) {heddle.id = "result.1"}
// CHECK: %[[ARGUMENT:.*]] = heddle.map(%arg0) {heddle.id = "result.2"}
// CHECK: return %[[N]], %[[AGAIN]], %[[ARGUMENT]]
func.func @returned(%x: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %n = heddle.unary neg %x {heddle.id = "neg"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %n, %n, %x : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}

// -----

// The input of products with quantised weights is quantised once for all of one block length.
// CHECK-LABEL: func.func @quantised
// CHECK: %[[Q:.*]] = heddle.quantise %arg0 : (tensor<?x64xf32>) -> tensor<?x64x!heddle.blocks<row32>>
// CHECK: heddle.linear %[[Q]]
// CHECK: heddle.linear %[[Q]]
// CHECK: %[[K:.*]] = heddle.quantise %arg0 : (tensor<?x64xf32>) -> tensor<?x64x!heddle.blocks<row256>>
// CHECK: heddle.linear %[[K]]
heddle.param @a : tensor<8x64x!heddle.blocks<q8_0>>
heddle.param @b : tensor<8x64x!heddle.blocks<q4_0>>
heddle.param @c : tensor<8x64x!heddle.blocks<q6_k>>
func.func @quantised(%x: tensor<?x64xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>) {
  %a = heddle.weight @a : tensor<8x64x!heddle.blocks<q8_0>>
  %b = heddle.weight @b : tensor<8x64x!heddle.blocks<q4_0>>
  %c = heddle.weight @c : tensor<8x64x!heddle.blocks<q6_k>>
  %1 = heddle.matmul %x, %a {transpose_rhs} : (tensor<?x64xf32>, tensor<8x64x!heddle.blocks<q8_0>>) -> tensor<?x8xf32>
  %2 = heddle.matmul %x, %b {transpose_rhs} : (tensor<?x64xf32>, tensor<8x64x!heddle.blocks<q4_0>>) -> tensor<?x8xf32>
  %3 = heddle.matmul %x, %c {transpose_rhs} : (tensor<?x64xf32>, tensor<8x64x!heddle.blocks<q6_k>>) -> tensor<?x8xf32>
  return %1, %2, %3 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>
}
