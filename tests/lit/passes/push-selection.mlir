// RUN: heddle-opt --push-selection %s | FileCheck %s
// RUN: heddle-opt --push-selection --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @w : tensor<8x8xf32>
heddle.param @u : tensor<8x8xf32>
heddle.param @n : tensor<8xf32>

// Past norm, product and both sides of a residual, up to attention and the product that mixes its
// heads; each value is selected once.
// CHECK-LABEL: func.func @block
// CHECK: %[[M:.*]] = heddle.merge_heads
// CHECK: %[[O:.*]] = heddle.matmul %[[M]], %{{.*}} {heddle.id = "mixed"}
// CHECK-NEXT: %[[S:.*]] = heddle.select_rows %[[O]], %arg1 {heddle.from = ["product", "sum", "norm", "logits", "asked"], heddle.id = "asked"}
// CHECK-NEXT: %[[A:.*]] = heddle.unary silu %[[O]]
// CHECK-NEXT: %[[B:.*]] = heddle.select_rows %[[A]], %arg1 {{{.*}}heddle.id = "asked.1"}
// CHECK-NEXT: %[[P:.*]] = heddle.matmul %[[B]], %{{.*}} {heddle.id = "product"}
// CHECK-NEXT: %[[R:.*]] = heddle.binary add %[[S]], %[[P]]
// CHECK: %[[N:.*]] = heddle.norm rms %[[R]] weight(%{{.*}})
// CHECK: %[[L:.*]] = heddle.matmul %[[N]], %{{.*}} {heddle.id = "logits"}
// CHECK-NEXT: return %[[L]]
// REMARK: remark: [Passed] push-selection {{.*}}From="product, sum, norm, logits, asked", Id=asked
func.func @block(%x: tensor<2x?x4xf32>, %rows: !heddle.sequences) -> tensor<?x8xf32> {
  %m = heddle.merge_heads %x : (tensor<2x?x4xf32>) -> tensor<?x8xf32>
  %w = heddle.weight @w : tensor<8x8xf32>
  %o = heddle.matmul %m, %w {heddle.id = "mixed"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %a = heddle.unary silu %o {heddle.id = "act"} : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %p = heddle.matmul %a, %w {heddle.id = "product"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %r = heddle.binary add %o, %p {heddle.id = "sum"} : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %nw = heddle.weight @n : tensor<8xf32>
  %n = heddle.norm rms %r weight(%nw) {heddle.id = "norm", epsilon = 1.0e-05 : f64} : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %u = heddle.weight @u : tensor<8x8xf32>
  %l = heddle.matmul %n, %u {heddle.id = "logits"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %s = heddle.select_rows %l, %rows {heddle.id = "asked"} : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// What broadcasts stays as it is; a column is selected as rows are.
// CHECK-LABEL: func.func @broadcast
// CHECK: %[[X:.*]] = heddle.select_rows %arg0, %arg1 {{{.*}}heddle.id = "asked"}
// CHECK: %[[C:.*]] = heddle.select_rows %arg2, %arg1 {{{.*}}heddle.id = "asked.1"}
// CHECK: %[[P:.*]] = heddle.matmul %[[X]]
// CHECK: %[[Y:.*]] = heddle.binary mul %[[P]], %{{.*}} : (tensor<?x8xf32>, tensor<8xf32>)
// CHECK: heddle.binary add %[[Y]], %[[C]] : (tensor<?x8xf32>, tensor<?x1xf32>)
func.func @broadcast(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %c: tensor<?x1xf32>) -> tensor<?x8xf32> {
  %b = heddle.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %w = heddle.weight @w : tensor<8x8xf32>
  %p = heddle.matmul %x, %w : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %y = heddle.binary mul %p, %b : (tensor<?x8xf32>, tensor<8xf32>) -> tensor<?x8xf32>
  %z = heddle.binary add %y, %c : (tensor<?x8xf32>, tensor<?x1xf32>) -> tensor<?x8xf32>
  %s = heddle.select_rows %z, %rows {heddle.id = "asked"} : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Not for elementwise operations alone.
// CHECK-LABEL: func.func @nothing_saved
// CHECK: %[[S:.*]] = heddle.binary add
// CHECK-NEXT: heddle.select_rows %[[S]]
// REMARK-NOT: Function=nothing_saved
func.func @nothing_saved(%x: tensor<?x8xf32>, %y: tensor<?x8xf32>, %rows: !heddle.sequences) -> tensor<?x8xf32> {
  %z = heddle.binary add %x, %y : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = heddle.select_rows %z, %rows {heddle.id = "asked"} : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Not past a value that something else reads.
// CHECK-LABEL: func.func @second_use
// CHECK: %[[L:.*]] = heddle.matmul %arg0
// CHECK-NEXT: heddle.select_rows %[[L]]
// REMARK: remark: [Missed] push-selection {{.*}}Function=second_use {{.*}}Id=asked, Reason="'logits' is also used by 'func.return'"
func.func @second_use(%x: tensor<?x8xf32>, %rows: !heddle.sequences) -> (tensor<?x8xf32>, tensor<?x8xf32>) {
  %w = heddle.weight @w : tensor<8x8xf32>
  %l = heddle.matmul %x, %w {heddle.id = "logits"} : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %s = heddle.select_rows %l, %rows {heddle.id = "asked"} : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s, %l : tensor<?x8xf32>, tensor<?x8xf32>
}

// Not for rows of two batches, not past a product with what is no weight, not where numbers are not
// f32, and not past what mixes rows.
// CHECK-LABEL: func.func @not_row_by_row
// CHECK: heddle.unary silu %arg0
// CHECK: heddle.cast %arg4 to f32
// CHECK: heddle.matmul %arg0, %arg3
// CHECK: heddle.reduce sum
// CHECK-COUNT-5: heddle.select_rows
// REMARK-NOT: [Passed] push-selection {{.*}}Function=not_row_by_row
func.func @not_row_by_row(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %others: !heddle.sequences, %m: tensor<8x8xf32>, %i: tensor<?x8xi32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x1xf32>) {
  %a = heddle.unary silu %x : (tensor<?x8xf32>) -> tensor<?x8xf32>
  %c = heddle.cast %i to f32 : (tensor<?x8xi32>) -> tensor<?x8xf32>
  %p = heddle.matmul %x, %m : (tensor<?x8xf32>, tensor<8x8xf32>) -> tensor<?x8xf32>
  %f = heddle.reduce sum %x {axis = 1 : i64} : (tensor<?x8xf32>) -> tensor<?x1xf32>
  %s = heddle.select_rows %a, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  %t = heddle.select_rows %a, %others : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  %u = heddle.select_rows %c, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  %v = heddle.select_rows %p, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  %w = heddle.select_rows %f, %rows : (tensor<?x1xf32>, !heddle.sequences) -> tensor<?x1xf32>
  return %s, %t, %u, %v, %w : tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x8xf32>, tensor<?x1xf32>
}

// Selections are of f32, also those of what a product reads.
heddle.param @half : tensor<8x8xbf16>
// CHECK-LABEL: func.func @rounded_first
// CHECK: heddle.cast %arg0 to bf16
// CHECK: heddle.matmul
// CHECK: heddle.select_rows
func.func @rounded_first(%x: tensor<?x8xf32>, %rows: !heddle.sequences) -> tensor<?x8xf32> {
  %h = heddle.cast %x to bf16 : (tensor<?x8xf32>) -> tensor<?x8xbf16>
  %w = heddle.weight @half : tensor<8x8xbf16>
  %p = heddle.matmul %h, %w : (tensor<?x8xbf16>, tensor<8x8xbf16>) -> tensor<?x8xf32>
  %s = heddle.select_rows %p, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Values that are read twice make no more work: forty doublings would be 2^40 paths.
// CHECK-LABEL: func.func @doubled
func.func @doubled(%x: tensor<?x8xf32>, %rows: !heddle.sequences) -> tensor<?x8xf32> {
  %d0 = heddle.binary mul %x, %x : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d1 = heddle.binary mul %d0, %d0 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d2 = heddle.binary mul %d1, %d1 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d3 = heddle.binary mul %d2, %d2 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d4 = heddle.binary mul %d3, %d3 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d5 = heddle.binary mul %d4, %d4 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d6 = heddle.binary mul %d5, %d5 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d7 = heddle.binary mul %d6, %d6 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d8 = heddle.binary mul %d7, %d7 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d9 = heddle.binary mul %d8, %d8 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d10 = heddle.binary mul %d9, %d9 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d11 = heddle.binary mul %d10, %d10 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d12 = heddle.binary mul %d11, %d11 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d13 = heddle.binary mul %d12, %d12 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d14 = heddle.binary mul %d13, %d13 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d15 = heddle.binary mul %d14, %d14 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d16 = heddle.binary mul %d15, %d15 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d17 = heddle.binary mul %d16, %d16 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d18 = heddle.binary mul %d17, %d17 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d19 = heddle.binary mul %d18, %d18 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d20 = heddle.binary mul %d19, %d19 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d21 = heddle.binary mul %d20, %d20 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d22 = heddle.binary mul %d21, %d21 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d23 = heddle.binary mul %d22, %d22 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d24 = heddle.binary mul %d23, %d23 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d25 = heddle.binary mul %d24, %d24 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d26 = heddle.binary mul %d25, %d25 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d27 = heddle.binary mul %d26, %d26 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d28 = heddle.binary mul %d27, %d27 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d29 = heddle.binary mul %d28, %d28 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d30 = heddle.binary mul %d29, %d29 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d31 = heddle.binary mul %d30, %d30 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d32 = heddle.binary mul %d31, %d31 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d33 = heddle.binary mul %d32, %d32 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d34 = heddle.binary mul %d33, %d33 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d35 = heddle.binary mul %d34, %d34 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d36 = heddle.binary mul %d35, %d35 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d37 = heddle.binary mul %d36, %d36 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d38 = heddle.binary mul %d37, %d37 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %d39 = heddle.binary mul %d38, %d38 : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x8xf32>
  %s = heddle.select_rows %d39, %rows : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %s : tensor<?x8xf32>
}

// Past a mixture of experts, whose values have three dimensions or are ids, as a whole: nothing is selected but rows of two dimensions.
heddle.param @router : tensor<8x4xf32>
heddle.param @up : tensor<4x16x8xf32>
heddle.param @down : tensor<4x8x16xf32>
// CHECK-LABEL: func.func @mixture
// CHECK-NEXT: %[[X:.*]] = heddle.select_rows %arg0, %arg1 {heddle.from = ["scores", "best", "shares", "up", "down", "column", "weighted", "sum", "mixed", "asked"], heddle.id = "asked"}
// CHECK: heddle.matmul %[[X]]
// CHECK: %[[V:.*]], %[[I:.*]] = heddle.top_k
// CHECK: %[[H:.*]] = heddle.expert_matmul %[[X]], %{{.*}} experts(%[[I]])
// CHECK: heddle.expert_matmul %[[H]], %{{.*}} experts(%[[I]])
// CHECK-NOT: heddle.select_rows
// CHECK: return
func.func @mixture(%x: tensor<?x8xf32>, %rows: !heddle.sequences) -> tensor<?x8xf32> {
  %r = heddle.weight @router : tensor<8x4xf32>
  %u = heddle.weight @up : tensor<4x16x8xf32>
  %d = heddle.weight @down : tensor<4x8x16xf32>
  %scores = heddle.matmul %x, %r {heddle.id = "scores"} : (tensor<?x8xf32>, tensor<8x4xf32>) -> tensor<?x4xf32>
  %best, %ids = heddle.top_k %scores {count = 2 : i64, heddle.id = "best"} : (tensor<?x4xf32>) -> (tensor<?x2xf32>, tensor<?x2xi32>)
  %shares = heddle.softmax %best {heddle.id = "shares"} : (tensor<?x2xf32>) -> tensor<?x2xf32>
  %h = heddle.expert_matmul %x, %u experts(%ids) {heddle.id = "up"} : (tensor<?x8xf32>, tensor<4x16x8xf32>, tensor<?x2xi32>) -> tensor<?x2x16xf32>
  %y = heddle.expert_matmul %h, %d experts(%ids) {heddle.id = "down"} : (tensor<?x2x16xf32>, tensor<4x8x16xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32>
  %c = heddle.reshape %shares {shape = array<i64: -1, 2, 1>, heddle.id = "column"} : (tensor<?x2xf32>) -> tensor<?x2x1xf32>
  %z = heddle.binary mul %y, %c {heddle.id = "weighted"} : (tensor<?x2x8xf32>, tensor<?x2x1xf32>) -> tensor<?x2x8xf32>
  %s = heddle.reduce sum %z {axis = 1 : i64, heddle.id = "sum"} : (tensor<?x2x8xf32>) -> tensor<?x1x8xf32>
  %m = heddle.reshape %s {shape = array<i64: -1, 8>, heddle.id = "mixed"} : (tensor<?x1x8xf32>) -> tensor<?x8xf32>
  %a = heddle.select_rows %m, %rows {heddle.id = "asked"} : (tensor<?x8xf32>, !heddle.sequences) -> tensor<?x8xf32>
  return %a : tensor<?x8xf32>
}

// Not where the ids of the experts are an argument: no rows of them can be selected.
// CHECK-LABEL: func.func @chosen_elsewhere
// CHECK: heddle.expert_matmul %arg0
// CHECK: heddle.select_rows
func.func @chosen_elsewhere(%x: tensor<?x8xf32>, %rows: !heddle.sequences, %ids: tensor<?x1xi32>) -> tensor<?x16xf32> {
  %u = heddle.weight @up : tensor<4x16x8xf32>
  %h = heddle.expert_matmul %x, %u experts(%ids) : (tensor<?x8xf32>, tensor<4x16x8xf32>, tensor<?x1xi32>) -> tensor<?x1x16xf32>
  %m = heddle.reshape %h {shape = array<i64: -1, 16>} : (tensor<?x1x16xf32>) -> tensor<?x16xf32>
  %a = heddle.select_rows %m, %rows {heddle.id = "asked"} : (tensor<?x16xf32>, !heddle.sequences) -> tensor<?x16xf32>
  return %a : tensor<?x16xf32>
}
