// RUN: heddle opt %s -split-input-file -verify-diagnostics -prepare-kernels -plan -lower-to-loops

module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  // expected-error @below {{function 'forward' has no body}}
  func.func private @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32>
}

// -----

module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  // expected-error @below {{function 'forward' has branches, a model has none}}
  func.func @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    cf.br ^next
  ^next:
    %y = heddle.unary neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
}

// -----

module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = heddle.unary neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
  // expected-error @below {{function 'other' stands beside the model, @forward, which calls nothing}}
  func.func @other(%x: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %y = heddle.unary neg %x : (tensor<?x4xf32>) -> tensor<?x4xf32>
    return %y : tensor<?x4xf32>
  }
}

// -----

module attributes {heddle.isa = "avx2", heddle.phase = "prefill"} {
  func.func @forward(%x: tensor<?x4xf32>, %w: tensor<3x8x4xf32>, %ids: tensor<?x2xi32>) -> tensor<?x2x8xf32> {
    // expected-error @below {{needs a parameter as its weight, found a computed tensor; what follows from weights alone becomes one by the fusion hoist-constants}}
    %y = heddle.expert_matmul %x, %w experts(%ids) : (tensor<?x4xf32>, tensor<3x8x4xf32>, tensor<?x2xi32>) -> tensor<?x2x8xf32>
    return %y : tensor<?x2x8xf32>
  }
}
