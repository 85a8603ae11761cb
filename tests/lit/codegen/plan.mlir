// RUN: heddle opt %s -split-input-file -prepare-kernels -plan | FileCheck %s

// Slots are given to values that begin after the last use of those before them, and results have
// buffers of their own, numbered without the cache.
// CHECK-LABEL: func.func @forward
// CHECK: heddle.softmax %arg0 {heddle.buffers = ["slot:0"]}
// CHECK: heddle.softmax %{{.*}} {heddle.buffers = ["slot:1"]}
// CHECK: heddle.softmax %{{.*}} {heddle.buffers = ["slot:0"]}
// CHECK: heddle.softmax %{{.*}} {heddle.buffers = ["output:0"]}
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
    %a = heddle.softmax %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %b = heddle.softmax %a : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %c = heddle.softmax %b : (tensor<?x8xf32>) -> tensor<?x8xf32>
    %d = heddle.softmax %c : (tensor<?x8xf32>) -> tensor<?x8xf32>
    return %d : tensor<?x8xf32>
  }
}

// -----

// Heads that will be merged lie row by row, so that merging is a view; but not those that are a
// result, whose order the type says.
// CHECK-LABEL: func.func @forward
// CHECK: heddle.matmul {{.*}} {heddle.buffers = ["slot:{{[0-9]}}"], {{.*}}heddle.rows_first
// CHECK: heddle.matmul
// CHECK-NOT: heddle.rows_first
// CHECK: return
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%a: tensor<2x?x4xf32>, %b: tensor<2x4x8xf32>) -> (tensor<?x16xf32>, tensor<2x?x8xf32>, tensor<?x16xf32>) {
    %m = heddle.matmul %a, %b : (tensor<2x?x4xf32>, tensor<2x4x8xf32>) -> tensor<2x?x8xf32>
    %g = heddle.merge_heads %m : (tensor<2x?x8xf32>) -> tensor<?x16xf32>
    %n = heddle.matmul %a, %b : (tensor<2x?x4xf32>, tensor<2x4x8xf32>) -> tensor<2x?x8xf32>
    %h = heddle.merge_heads %n : (tensor<2x?x8xf32>) -> tensor<?x16xf32>
    return %g, %n, %h : tensor<?x16xf32>, tensor<2x?x8xf32>, tensor<?x16xf32>
  }
}
