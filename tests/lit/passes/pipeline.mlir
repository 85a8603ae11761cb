// RUN: heddle-opt --heddle-fuse %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: heddle-opt --heddle-fuse=fuse=none %s --dump-pass-pipeline 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not heddle-opt --heddle-fuse=fuse=all,-glue %s 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// ALL: func.func(
// ALL-NEXT: assign-ids,
// ALL-NEXT: expand-composites,
// ALL-NEXT: remove-redundant

// NONE: func.func(
// NONE-NEXT: assign-ids,
// NONE-NEXT: expand-composites,
// NONE-NEXT: remove-redundant
// NONE-NOT: fuse-

// UNKNOWN: unknown fusion 'glue'; the names are all, none
