// RUN: heddle opt %s -split-input-file -prepare-kernels -plan | FileCheck %s --check-prefix=PLAN
// RUN: heddle opt %s -split-input-file -prepare-kernels -plan -lower-to-loops | FileCheck %s

// Two products of one input share a phase, and so do the softmaxes after them; what needs one of
// them does not. No value of a phase lies where another one of it is read.
module attributes {heddle.isa = "avx2", heddle.phase = "decode"} {
  heddle.param @a : tensor<32x64xf32>
  heddle.param @b : tensor<32x64xf32>
  func.func @forward(%x: tensor<?x64xf32>) -> tensor<?x32xf32> {
    %wa = heddle.weight @a : tensor<32x64xf32>
    %n = heddle.norm rms %x {epsilon = 1.0e-5 : f64} : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %p = heddle.matmul %n, %wa {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    %wb = heddle.weight @b : tensor<32x64xf32>
    %q = heddle.matmul %n, %wb {transpose_rhs} : (tensor<?x64xf32>, tensor<32x64xf32>) -> tensor<?x32xf32>
    %r = heddle.softmax %p : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %v = heddle.slice %q {axis = 1 : i64, start = 0 : i64, size = 32 : i64} : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %s = heddle.softmax %v : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %t = heddle.binary add %r, %s : (tensor<?x32xf32>, tensor<?x32xf32>) -> tensor<?x32xf32>
    return %t : tensor<?x32xf32>
  }
}
// PLAN-LABEL: func.func @forward
// PLAN: heddle.norm rms {{.*}}heddle.buffers = ["slot:0"]
// PLAN-NOT: heddle.joined
// PLAN: heddle.linear {{.*}}heddle.buffers = ["slot:1"]
// PLAN-NOT: heddle.joined
// PLAN: heddle.linear {{.*}}heddle.buffers = ["slot:2"], heddle.joined
// PLAN: heddle.softmax {{.*}}heddle.buffers = ["slot:0"]}
// PLAN: heddle.softmax {{.*}}heddle.buffers = ["slot:3"], heddle.joined}
// PLAN: heddle.map{{.*}}heddle.buffers = ["output:0"]}
// CHECK-LABEL: heddle.program @decode
// CHECK: heddle.launch @norm_0 {
// CHECK: heddle.launch @linear_decode_0 {
// CHECK: heddle.launch @linear_decode_0 joined {
// CHECK: heddle.launch @softmax_0 {
// CHECK: heddle.launch @softmax_0 joined {
// CHECK: heddle.launch @map_0 {

// -----

// Prefill gains nothing from it.
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x64xf32>, %y: tensor<?x64xf32>) -> (tensor<?x64xf32>, tensor<?x64xf32>) {
    %p = heddle.softmax %x : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %q = heddle.softmax %y : (tensor<?x64xf32>) -> tensor<?x64xf32>
    return %p, %q : tensor<?x64xf32>, tensor<?x64xf32>
  }
}
// PLAN-LABEL: func.func @forward
// PLAN-NOT: heddle.joined
// PLAN: return
// CHECK-LABEL: heddle.program @prefill
// CHECK-NOT: joined
// CHECK: func.func

// -----

// A view takes part in no phase, but what it shows does.
module attributes {heddle.isa = "avx2", heddle.phase = "decode"} {
  func.func @forward(%x: tensor<?x64xf32>, %y: tensor<?x32xf32>) -> (tensor<?x32xf32>, tensor<?x32xf32>) {
    %p = heddle.softmax %x : (tensor<?x64xf32>) -> tensor<?x64xf32>
    %v = heddle.slice %p {axis = 1 : i64, start = 0 : i64, size = 32 : i64} : (tensor<?x64xf32>) -> tensor<?x32xf32>
    %q = heddle.softmax %v : (tensor<?x32xf32>) -> tensor<?x32xf32>
    %r = heddle.softmax %y : (tensor<?x32xf32>) -> tensor<?x32xf32>
    return %q, %r : tensor<?x32xf32>, tensor<?x32xf32>
  }
}
// PLAN-LABEL: func.func @forward
// PLAN: heddle.softmax
// PLAN: heddle.softmax {{.*}}heddle.buffers = ["output:0"]}
// PLAN: heddle.softmax {{.*}}heddle.buffers = ["output:1"], heddle.joined}
// CHECK-LABEL: heddle.program @decode
