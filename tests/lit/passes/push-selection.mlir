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
// REMARK-NOT: Function=not_row_by_row {{.*}}Passed
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
