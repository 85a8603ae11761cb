// RUN: heddle opt %s -split-input-file -prepare-kernels -plan -lower-to-loops | FileCheck %s

// Tensors of one shape are one long row; the number of its elements is known to divide by 16.
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x64xf32>, %rows: !heddle.sequences, %y: tensor<?x64xf32>) -> tensor<?x64xf32> {
    %z = heddle.binary add %x, %y : (tensor<?x64xf32>, tensor<?x64xf32>) -> tensor<?x64xf32>
    return %z : tensor<?x64xf32>
  }
}
// CHECK-LABEL: heddle.program @prefill
// CHECK: heddle.launch @map_0
// CHECK-SAME: bytes = "768*tokens@1"
// CHECK-SAME: grid = ["64*tokens@1/4096"]
// CHECK: func.func @map_0
// CHECK-NOT: vector.maskedload
// CHECK: return

// -----

// A row that is repeated keeps the rows apart.
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x100xf32>, %y: tensor<100xf32>) -> tensor<?x100xf32> {
    %z = heddle.binary add %x, %y : (tensor<?x100xf32>, tensor<100xf32>) -> tensor<?x100xf32>
    return %z : tensor<?x100xf32>
  }
}
// CHECK-LABEL: heddle.program @prefill
// CHECK: heddle.launch @map_0
// CHECK-SAME: grid = ["tensor@0.0/32"]
// CHECK: vector.maskedload

// -----

// No function of a library is left to be called.
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?xf32>) -> tensor<?xf32> {
    %0 = heddle.unary exp %x : (tensor<?xf32>) -> tensor<?xf32>
    %1 = heddle.unary log %0 : (tensor<?xf32>) -> tensor<?xf32>
    %2 = heddle.unary tanh %1 : (tensor<?xf32>) -> tensor<?xf32>
    %3 = heddle.unary erf %2 : (tensor<?xf32>) -> tensor<?xf32>
    %4 = heddle.unary sin %3 : (tensor<?xf32>) -> tensor<?xf32>
    %5 = heddle.unary cos %4 : (tensor<?xf32>) -> tensor<?xf32>
    return %5 : tensor<?xf32>
  }
}
// CHECK-LABEL: heddle.program @prefill
// CHECK-NOT: math.{{exp|log|tanh|erf|sin|cos}}{{ }}
// CHECK-NOT: call

// -----

// Attention reads the cache itself: only what something else reads is gathered. Layers share their
// kernels.
module attributes {heddle.isa = "avx512", heddle.phase = "decode"} {
  func.func @forward(%k: tensor<4x?x8xf32>, %v: tensor<4x?x8xf32>, %ids: tensor<?xi32>, %rows: !heddle.sequences, %c: !heddle.cache<2 x 4, 8, 8, bf16>) -> (tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.cache<2 x 4, 8, 8, bf16>) {
    %c1, %k1, %v1, %r1 = heddle.cache_append %c, %k, %v, %rows {layer = 0 : i64} : (!heddle.cache<2 x 4, 8, 8, bf16>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, bf16>, tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.sequences)
    %c2, %k2, %v2, %r2 = heddle.cache_append %c1, %k, %v, %rows {layer = 1 : i64} : (!heddle.cache<2 x 4, 8, 8, bf16>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<2 x 4, 8, 8, bf16>, tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.sequences)
    return %k1, %k2, %c2 : tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.cache<2 x 4, 8, 8, bf16>
  }
}
// CHECK-LABEL: heddle.program @decode
// CHECK: heddle.launch @cache_append_0 {{.*}}"cache_keys:0", {{.*}}"cache_values:0"
// CHECK: heddle.launch @cache_keys_0 {{.*}}"cache_keys:0"
// CHECK-NOT: heddle.launch @cache_values
// CHECK: heddle.launch @cache_append_0 {{.*}}"cache_keys:1", {{.*}}"cache_values:1"
// CHECK: heddle.launch @cache_keys_0 {{.*}}"cache_keys:1"

// -----

// Scores are counted apart.
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%s: tensor<8x?x?xf32>) -> tensor<8x?x?xf32> {
    %m = heddle.mask %s {causal} : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %p = heddle.softmax %m : (tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    return %p : tensor<8x?x?xf32>
  }
}
// CHECK-LABEL: heddle.program @prefill
// CHECK: heddle.launch @mask_0 {attention = "32*tensor@0.1*tensor@0.2"
// CHECK: heddle.launch @softmax_0 {attention = "32*tensor@0.1*tensor@0.2"

// -----

// A vector of which one lane is left is stored as a scalar: LLVM 22 makes of a masked store of one
// narrowed lane a store of the wide one, which hits the row below.
module attributes {heddle.isa = "avx512_bf16", heddle.phase = "prefill"} {
  heddle.param @a : tensor<12x17xbf16>
  heddle.param @b : tensor<17x16xbf16>
  func.func @forward(%x: tensor<?x12xf32>) -> tensor<?x16xf32> {
    %a = heddle.weight @a : tensor<12x17xbf16>
    %b = heddle.weight @b : tensor<17x16xbf16>
    %y = heddle.matmul %x, %a : (tensor<?x12xf32>, tensor<12x17xbf16>) -> tensor<?x17xf32>
    %z = heddle.matmul %y, %b : (tensor<?x17xf32>, tensor<17x16xbf16>) -> tensor<?x16xf32>
    return %z : tensor<?x16xf32>
  }
}
// CHECK-LABEL: heddle.program @prefill
// CHECK: func.func @linear_prefill_0
// CHECK-NOT: vector.maskedstore {{.*}}vector<16xi16>
// CHECK: %[[LANE:.*]] = vector.extract %{{.*}}[0] : i16 from vector<16xi16>
// CHECK-NEXT: memref.store %[[LANE]]
// CHECK-NOT: vector.maskedstore {{.*}}vector<16xi16>
// CHECK: func.func @linear_prefill_1
