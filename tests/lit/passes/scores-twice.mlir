// RUN: heddle-opt --heddle-fuse %s | FileCheck %s
// RUN: heddle-opt --heddle-fuse=fuse=none %s | FileCheck %s --check-prefix=NONE
// RUN: heddle-opt --heddle-fuse --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

// Two attentions of the same queries and keys, causal and within a window: their products agree, and
// each fuses all the same. Unfused, the product is made once.
// CHECK-LABEL: func.func @written_twice
// CHECK-NOT: heddle.matmul
// CHECK: heddle.attention %arg0, %arg1, %arg2 {causal, {{.*}}heddle.id = "a"
// CHECK: heddle.attention %arg0, %arg1, %arg2 {heddle.from = {{.*}}heddle.id = "b", masked, window = 4 : i64}
// CHECK-NOT: heddle.matmul
// CHECK: return
// NONE-LABEL: func.func @written_twice
// NONE: heddle.matmul %arg0, %arg1
// NONE-NOT: heddle.matmul %arg0, %arg1
// NONE: return
func.func @written_twice(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<2x?x8xf32>, tensor<2x?x8xf32>) -> tensor<2x?x?xf32>
  %m = heddle.mask %s {causal} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p = heddle.softmax %m : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %a = heddle.matmul %p, %v {heddle.id = "a"} : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  %t = heddle.matmul %q, %k {transpose_rhs} : (tensor<2x?x8xf32>, tensor<2x?x8xf32>) -> tensor<2x?x?xf32>
  %n = heddle.mask %t {window = 4 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %w = heddle.softmax %n : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %b = heddle.matmul %w, %v {heddle.id = "b"} : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  return %a, %b : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// Two attentions that agree in everything become one.
// CHECK-LABEL: func.func @the_same
// CHECK-COUNT-1: heddle.attention
// CHECK-NOT: heddle.attention
// CHECK: return
func.func @the_same(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<2x?x8xf32>, tensor<2x?x8xf32>) -> tensor<2x?x?xf32>
  %p = heddle.softmax %s : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %a = heddle.matmul %p, %v : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  %t = heddle.matmul %q, %k {transpose_rhs} : (tensor<2x?x8xf32>, tensor<2x?x8xf32>) -> tensor<2x?x?xf32>
  %w = heddle.softmax %t : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %b = heddle.matmul %w, %v : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  return %a, %b : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}

// A product that is written once and read twice stays as it is written.
// CHECK-LABEL: func.func @written_once
// CHECK-NOT: heddle.attention
// CHECK: return
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the scores of 'scores' are also used by {{.*}}Remedy="multiply queries and keys once for each of them"
func.func @written_once(%q: tensor<2x?x8xf32>, %k: tensor<2x?x8xf32>, %v: tensor<2x?x8xf32>) -> (tensor<2x?x8xf32>, tensor<2x?x8xf32>) {
  %s = heddle.matmul %q, %k {heddle.id = "scores", transpose_rhs} : (tensor<2x?x8xf32>, tensor<2x?x8xf32>) -> tensor<2x?x?xf32>
  %m = heddle.mask %s {causal} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %p = heddle.softmax %m : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %a = heddle.matmul %p, %v : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  %n = heddle.mask %s {window = 4 : i64} : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %w = heddle.softmax %n : (tensor<2x?x?xf32>) -> tensor<2x?x?xf32>
  %b = heddle.matmul %w, %v : (tensor<2x?x?xf32>, tensor<2x?x8xf32>) -> tensor<2x?x8xf32>
  return %a, %b : tensor<2x?x8xf32>, tensor<2x?x8xf32>
}
