// Where fuse-attention must not fire, and what it says about it.
// RUN: heddle-opt --fuse-attention --split-input-file %s | FileCheck %s --implicit-check-not=heddle.attention
// RUN: heddle-opt --fuse-attention --split-input-file --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK --implicit-check-not=remark:

// CHECK-LABEL: @negative_scale_after_mask
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="'scale' changes scores that 'mask' has hidden already"{{.*}}Remedy="put the mask last, right before the softmax"
func.func @negative_scale_after_mask(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  %c = heddle.constant dense<-2.0> : tensor<f32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal, heddle.id = "mask"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %a = heddle.binary mul %m, %c {heddle.id = "scale"} : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %a : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// A bias that is only known at run time may be infinite.
// CHECK-LABEL: @bias_after_mask
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="'bias' changes scores that 'mask' has hidden already"
func.func @bias_after_mask(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>, %b: tensor<8x1x1xf32>) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal, heddle.id = "mask"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %a = heddle.binary add %m, %b {heddle.id = "bias"} : (tensor<8x?x?xf32>, tensor<8x1x1xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %a : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// tanh turns -inf into -1.
// CHECK-LABEL: @softcap_after_mask
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="'cap' changes scores that 'mask' has hidden already"
func.func @softcap_after_mask(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal, heddle.id = "mask"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %a = heddle.unary tanh %m {heddle.id = "cap"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %a : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// CHECK-LABEL: @other_axis
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="softmax runs along dimension 1 of [8, 4, 4] f32, and keys are the last one"
func.func @other_axis(%q: tensor<8x4x8xf32>, %k: tensor<8x4x8xf32>, %v: tensor<8x4x8xf32>) -> tensor<8x4x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x4x8xf32>, tensor<8x4x8xf32>) -> tensor<8x4x4xf32>
  %p = heddle.softmax %s {axis = 1 : i64} : (tensor<8x4x4xf32>) -> tensor<8x4x4xf32>
  %o = heddle.matmul %p, %v : (tensor<8x4x4xf32>, tensor<8x4x8xf32>) -> tensor<8x4x8xf32>
  return %o : tensor<8x4x8xf32>
}

// -----

// CHECK-LABEL: @mask_after_softmax
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="'late' comes between the softmax and the product with the values"{{.*}}Remedy="masks belong before the softmax"
func.func @mask_after_softmax(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %p {causal, heddle.id = "late"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %m, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// CHECK-LABEL: @weights_wanted
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the weights that 'softmax' makes are also used by 'func.return'"
func.func @weights_wanted(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> (tensor<8x?x8xf32>, tensor<8x?x?xf32>) {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s {heddle.id = "softmax"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o, %p : tensor<8x?x8xf32>, tensor<8x?x?xf32>
}

// -----

// CHECK-LABEL: @scores_wanted
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the scores of 'qk' are also used by 'func.return'"
func.func @scores_wanted(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> (tensor<8x?x8xf32>, tensor<8x?x?xf32>) {
  %s = heddle.matmul %q, %k {transpose_rhs, heddle.id = "qk"} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %m : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o, %s : tensor<8x?x8xf32>, tensor<8x?x?xf32>
}

// -----

// CHECK-LABEL: @inside_of_chain_wanted
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the scores of 'scale' are also used by 'func.return'"
func.func @inside_of_chain_wanted(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> (tensor<8x?x8xf32>, tensor<8x?x?xf32>) {
  %c = heddle.constant dense<2.0> : tensor<f32>
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %t = heddle.binary mul %s, %c {heddle.id = "scale"} : (tensor<8x?x?xf32>, tensor<f32>) -> tensor<8x?x?xf32>
  %u = heddle.unary tanh %t : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %u : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o, %t : tensor<8x?x8xf32>, tensor<8x?x?xf32>
}

// -----

// CHECK-LABEL: @masked_scores_wanted
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the scores of 'mask' are also used by 'func.return'"
func.func @masked_scores_wanted(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> (tensor<8x?x8xf32>, tensor<8x?x?xf32>) {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal, heddle.id = "mask"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %m : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o, %m : tensor<8x?x8xf32>, tensor<8x?x?xf32>
}

// -----

// CHECK-LABEL: @two_descriptions
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="masks 'outer' and 'inner' describe queries and keys by different sequences"
func.func @two_descriptions(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>, %r: !heddle.sequences) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {causal, heddle.id = "inner"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %n = heddle.mask %m queries(%r) keys(%r) {causal, heddle.id = "outer"} : (tensor<8x?x?xf32>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x?xf32>
  %p = heddle.softmax %n : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// Additive attention: the scores are a sum over tanh, not a product.
// CHECK-LABEL: @additive
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="the scores of 'softmax' are not made by a product of queries and keys"
func.func @additive(%t: tensor<8x?x?xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  %s = heddle.unary tanh %t : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %s {heddle.id = "softmax"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// Neither chunk lies in the other.
// CHECK-LABEL: @two_chunks
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="masks 'outer' and 'inner' have chunks of 6 and 4 positions, of which neither divides the other"
func.func @two_chunks(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s {chunk = 4 : i64, heddle.id = "inner"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %n = heddle.mask %m {chunk = 6 : i64, heddle.id = "outer"} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %n : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// CHECK-LABEL: @two_numberings
// REMARK: remark: [Missed] fuse-attention {{.*}}Reason="masks 'outer' and 'inner' number their segments differently"
func.func @two_numberings(%q: tensor<8x?x8xf32>, %k: tensor<8x?x8xf32>, %v: tensor<8x?x8xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<8x?x8xf32> {
  %s = heddle.matmul %q, %k {transpose_rhs} : (tensor<8x?x8xf32>, tensor<8x?x8xf32>) -> tensor<8x?x?xf32>
  %m = heddle.mask %s segments(%a, %a) {heddle.id = "inner"} : (tensor<8x?x?xf32>, tensor<?xi32>, tensor<?xi32>) -> tensor<8x?x?xf32>
  %n = heddle.mask %m segments(%b, %b) {heddle.id = "outer"} : (tensor<8x?x?xf32>, tensor<?xi32>, tensor<?xi32>) -> tensor<8x?x?xf32>
  %p = heddle.softmax %n : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
  %o = heddle.matmul %p, %v : (tensor<8x?x?xf32>, tensor<8x?x8xf32>) -> tensor<8x?x8xf32>
  return %o : tensor<8x?x8xf32>
}

// -----

// A softmax that is the end of something else is not worth a word.
// CHECK-LABEL: @classifier
func.func @classifier(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {
  %p = heddle.softmax %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  return %p : tensor<?x8xf32>
}
