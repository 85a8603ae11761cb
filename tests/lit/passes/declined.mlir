// A fusion that was measured not to pay for a shape leaves operations of that shape alone, says so, and notes where. Others are fused.
// RUN: heddle-opt --heddle-fuse %s | FileCheck %s
// RUN: heddle-opt --fuse-gated-linear --remark-format=emitRemark --remarks-filter=fusion %s 2>&1 \
// RUN:   | FileCheck %s --check-prefix=REMARK

heddle.param @g : tensor<64x172xf32>
heddle.param @u : tensor<64x172xf32>
heddle.param @v : tensor<64x96xf32>
heddle.param @w : tensor<64x96xf32>

// CHECK-LABEL: func.func @forward
// CHECK-SAME: heddle.declined = [{at = ["product"], fusion = "fuse-gated-linear", shape = "64x172xf32 64x172xf32", why = "64 tokens take 3 us fused, 2 us unfused"}
// REMARK: remark: [Missed] fuse-gated-linear {{.*}}Declined="64 tokens take 3 us fused, 2 us unfused", Id=product, Shape="64x172xf32 64x172xf32"
// REMARK: remark: [Passed] fuse-gated-linear {{.*}}Id=other
func.func @forward(%x: tensor<?x64xf32>) -> (tensor<?x172xf32>, tensor<?x96xf32>) attributes {heddle.declined = [
    {fusion = "fuse-gated-linear", shape = "64x172xf32 64x172xf32", why = "64 tokens take 3 us fused, 2 us unfused"},
    {fusion = "fuse-gated-linear", shape = "64x172xbf16 64x172xbf16", why = "never met"}, 7 : i64]} {
  %g = heddle.weight @g : tensor<64x172xf32>
  %u = heddle.weight @u : tensor<64x172xf32>
  // CHECK: heddle.matmul {{.*}}heddle.id = "up"
  // CHECK: heddle.linear {{.*}}heddle.id = "product"
  %p = heddle.matmul %x, %g {heddle.id = "gate"} : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %q = heddle.matmul %x, %u {heddle.id = "up"} : (tensor<?x64xf32>, tensor<64x172xf32>) -> tensor<?x172xf32>
  %m = heddle.binary mul %p, %q {heddle.id = "product"} : (tensor<?x172xf32>, tensor<?x172xf32>) -> tensor<?x172xf32>
  // CHECK: heddle.gated_linear {{.*}}heddle.id = "other"
  %v = heddle.weight @v : tensor<64x96xf32>
  %r = heddle.matmul %x, %v {heddle.id = "gate2"} : (tensor<?x64xf32>, tensor<64x96xf32>) -> tensor<?x96xf32>
  %w = heddle.weight @w : tensor<64x96xf32>
  %s = heddle.matmul %x, %w {heddle.id = "up2"} : (tensor<?x64xf32>, tensor<64x96xf32>) -> tensor<?x96xf32>
  %t = heddle.binary mul %r, %s {heddle.id = "other"} : (tensor<?x96xf32>, tensor<?x96xf32>) -> tensor<?x96xf32>
  return %m, %t : tensor<?x172xf32>, tensor<?x96xf32>
}
