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

// -----

// The plan says which blocks of keys attention touches, for a query at position p of n keys.
// CHECK-LABEL: func.func @blocks
// CHECK: heddle.attention
// CHECK-SAME: blocks = {edge = "the last block with these keys", full = "the other blocks", keys = "0 to n - 1", skipped = "none"}
// CHECK: heddle.attention
// CHECK-SAME: blocks = {edge = "the last block with these keys", full = "the other blocks", keys = "0 to min(n - 1, p)", skipped = "blocks without these keys"}
// CHECK: heddle.attention
// CHECK-SAME: blocks = {edge = "the first and the last block with these keys", full = "the other blocks", keys = "max(0, p - 3, p / 8 * 8) to min(n - 1, max(p, 5), p, p / 8 * 8 + 7)", skipped = "blocks without these keys"}
// CHECK: heddle.attention
// CHECK-SAME: blocks = {edge = "the first and the last block with these keys, all where others lie between them", full = "the other blocks", keys = "the first to the last of p's segment in 0 to n - 1", skipped = "blocks without these keys"}
module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @blocks(%q: tensor<2x?x4xf32>, %k: tensor<2x?x4xf32>, %a: tensor<?xi32>, %b: tensor<?xi32>) -> (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) {
    %0 = heddle.attention %q, %k, %k : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    %1 = heddle.attention %q, %k, %k {masked, causal} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    %2 = heddle.attention %q, %k, %k {masked, causal, prefix = 6 : i64, window = 4 : i64, chunk = 8 : i64} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>) -> tensor<2x?x4xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    %3 = heddle.attention %q, %k, %k segments(%a, %b) {masked} : (tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<?xi32>, tensor<?xi32>) -> tensor<2x?x4xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    return %0, %1, %2, %3 : tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>, tensor<2x?x4xf32>
  }
}

// -----

// In decode a tile of attention takes key heads enough for four chains of sums; for eight where half a vector serves a head's
// values, which caches in f16 and int8 do not have.
module attributes {heddle.isa = "avx512", heddle.phase = "decode"} {
  // CHECK-LABEL: func.func @narrow_heads
  func.func @narrow_heads(%q: tensor<8x?x8xf32>, %k: tensor<4x?x8xf32>, %rows: !heddle.sequences, %a: !heddle.cache<1 x 4, 8, 8, bf16>, %b: !heddle.cache<1 x 4, 8, 8, f16>) -> (tensor<8x?x8xf32>, tensor<8x?x8xf32>, !heddle.cache<1 x 4, 8, 8, bf16>, !heddle.cache<1 x 4, 8, 8, f16>) {
    %a1, %ak, %av, %ar = heddle.cache_append %a, %k, %k, %rows {layer = 0 : i64} : (!heddle.cache<1 x 4, 8, 8, bf16>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<1 x 4, 8, 8, bf16>, tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.sequences)
    %b1, %bk, %bv, %br = heddle.cache_append %b, %k, %k, %rows {layer = 0 : i64} : (!heddle.cache<1 x 4, 8, 8, f16>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences) -> (!heddle.cache<1 x 4, 8, 8, f16>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences)
    // CHECK: heddle.attention {{.*}}key_heads = 4 : i64
    %x = heddle.attention %q, %ak, %av queries(%rows) keys(%ar) {causal, masked} : (tensor<8x?x8xf32>, tensor<4x?x8xbf16>, tensor<4x?x8xbf16>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x8xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    // CHECK: heddle.attention {{.*}}key_heads = 2 : i64
    %y = heddle.attention %q, %bk, %bv queries(%rows) keys(%br) {causal, masked} : (tensor<8x?x8xf32>, tensor<4x?x8xf32>, tensor<4x?x8xf32>, !heddle.sequences, !heddle.sequences) -> tensor<8x?x8xf32> {
    ^bb0(%s: f32):
      heddle.yield %s : f32
    }
    return %x, %y, %a1, %b1 : tensor<8x?x8xf32>, tensor<8x?x8xf32>, !heddle.cache<1 x 4, 8, 8, bf16>, !heddle.cache<1 x 4, 8, 8, f16>
  }
}
