// RUN: heddle-opt --heddle-fuse %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: heddle-opt --heddle-fuse=fuse=none %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: heddle-opt --heddle-fuse=fuse=all,-fuse-epilogue %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: heddle-opt --heddle-fuse=fuse=elementwise,fuse-epilogue %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not heddle-opt --heddle-fuse=fuse=all,-glue %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// ALL: func.func(
// ALL-NEXT: assign-ids,
// ALL-NEXT: expand-composites,
// ALL-NEXT: remove-redundant
// ALL: hoist-constants
// ALL-NEXT: func.func(
// ALL-NEXT: push-selection
// ALL: fuse-epilogue
// ALL-NEXT: fuse-elementwise

// NONE: func.func(
// NONE-NEXT: assign-ids,
// NONE-NEXT: expand-composites,
// NONE-NEXT: remove-redundant
// NONE-NOT: fuse-

// WITHOUT: fuse-gated-linear
// WITHOUT-NOT: fuse-epilogue
// WITHOUT: fuse-elementwise

// TWO: remove-redundant
// TWO-NEXT: fuse-epilogue
// TWO-NEXT: fuse-elementwise
// TWO-NOT: fuse-

// UNKNOWN: unknown fusion 'glue'; the names are all, none, {{.*}}fuse-elementwise
